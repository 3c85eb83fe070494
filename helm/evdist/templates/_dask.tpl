{{/* Dask's settings, read from /etc/dask by every process of Dask. */}}
{{- define "evdist.daskConfig" -}}
temporary-directory: /scratch
distributed:
  comm:
    require-encryption: {{ .Values.tls.enabled }}
    {{- if .Values.tls.enabled }}
    tls:
      ca-file: /etc/evdist/tls/ca.crt
      min-version: 1.3
      scheduler: {cert: /etc/evdist/tls/tls.crt, key: /etc/evdist/tls/tls.key}
      worker: {cert: /etc/evdist/tls/tls.crt, key: /etc/evdist/tls/tls.key}
      client: {cert: /etc/evdist/tls/tls.crt, key: /etc/evdist/tls/tls.key}
    {{- end }}
  scheduler:
    preload: [evdist.service.monitor.scheduler]
    allowed-failures: 10
    # A job that asks an adaptive cluster for workers does so by tasks that count as long ones.
    default-task-durations: {evdist-place: 60s}
    http:
      routes:
        - distributed.http.scheduler.prometheus
        - distributed.http.scheduler.info
        - distributed.http.scheduler.json
        - distributed.http.health
        - distributed.http.statics
        {{- if eq .Values.dask.mode "operator" }}
        # The operator asks here how many workers to run, and which to end.
        - distributed.http.scheduler.api
        {{- end }}
        - evdist.service.monitor.page
{{- end -}}

{{- define "evdist.daskVolumes" -}}
- name: dask-config
  configMap: {name: {{ include "evdist.name" . }}-dask}
{{- include "evdist.tlsVolume" (list . (include "evdist.tlsSecret" .)) }}
{{ include "evdist.emptyDir" (list "tmp" "2Gi") }}
{{- end -}}

{{- define "evdist.daskMounts" -}}
- name: dask-config
  mountPath: /etc/dask
  readOnly: true
{{- include "evdist.tlsMount" . }}
- name: tmp
  mountPath: /tmp
- name: scratch
  mountPath: /scratch
{{- end -}}

{{- define "evdist.schedulerPod" -}}
{{ include "evdist.pod" (list . (include "evdist.name" .) false) }}
terminationGracePeriodSeconds: 30
{{- include "evdist.placement" .Values.dask.scheduler }}
containers:
  - name: scheduler
    {{- include "evdist.container" . | nindent 4 }}
    args:
      - dask
      - scheduler
      - --protocol={{ include "evdist.protocol" . }}
      - --port=8786
      - --dashboard-address=:8787
    ports:
      - {name: tcp-comm, containerPort: 8786}
      - {name: http-dashboard, containerPort: 8787}
    startupProbe:
      httpGet: {path: /health, port: http-dashboard}
      failureThreshold: 150
      periodSeconds: 2
    readinessProbe:
      httpGet: {path: /health, port: http-dashboard}
      periodSeconds: 5
      timeoutSeconds: 5
    livenessProbe:
      httpGet: {path: /health, port: http-dashboard}
      periodSeconds: 15
      timeoutSeconds: 15
      failureThreshold: 8
    resources:
      {{- toYaml .Values.dask.scheduler.resources | nindent 6 }}
    volumeMounts:
      {{- include "evdist.daskMounts" . | nindent 6 }}
volumes:
  {{- include "evdist.daskVolumes" . | nindent 2 }}
  {{- include "evdist.emptyDir" (list "scratch" "1Gi") | nindent 2 }}
{{- end -}}

{{/* (dict "root" $ "group" values "gpu" bool) */}}
{{- define "evdist.workerPod" -}}
{{- $ := .root -}}
{{- $group := .group -}}
{{ include "evdist.pod" (list $ (include "evdist.name" $) false) }}
# Time to hand over what it holds.
terminationGracePeriodSeconds: 60
{{- include "evdist.placement" $group }}
{{- include "evdist.spread" (list $ "worker") }}
{{- if .gpu }}
{{- with $group.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end }}
containers:
  - name: worker
    {{- if .gpu }}
    image: {{ include "evdist.gpuImage" $ | quote }}
    imagePullPolicy: {{ $.Values.image.pullPolicy }}
    securityContext:
      {{- include "evdist.containerSecurity" $ | nindent 6 }}
    {{- else }}
    {{- include "evdist.container" $ | nindent 4 }}
    {{- end }}
    args:
      - dask
      - worker
      - {{ include "evdist.scheduler" $ }}
      - --name=$(DASK_WORKER_NAME)
      - --worker-port=8788
      - --nanny-port=8789
      - --dashboard-address=:8790
      - --nthreads=$(EVDIST_THREADS)
      - --memory-limit=$(EVDIST_MEMORY)
      - --local-directory=/scratch
      - --death-timeout=300
      {{- if .gpu }}
      - --resources=GPU={{ $group.count }}
      {{- end }}
    env:
      {{- if eq $.Values.dask.mode "deployment" }}
      - name: DASK_WORKER_NAME
        valueFrom: {fieldRef: {fieldPath: metadata.name}}
      {{- end }}
      - name: EVDIST_THREADS
        valueFrom: {resourceFieldRef: {containerName: worker, resource: limits.cpu}}
      - name: EVDIST_MEMORY
        valueFrom: {resourceFieldRef: {containerName: worker, resource: limits.memory}}
      # One thread of a task is one thread: Dask's own are enough.
      - {name: OMP_NUM_THREADS, value: "1"}
      - {name: OPENBLAS_NUM_THREADS, value: "1"}
      {{- include "evdist.storageEnv" $ | nindent 6 }}
    ports:
      - {name: worker, containerPort: 8788}
      - {name: nanny, containerPort: 8789}
      - {name: http-worker, containerPort: 8790}
    startupProbe:
      httpGet: {path: /health, port: http-worker}
      failureThreshold: 150
      periodSeconds: 2
    readinessProbe:
      httpGet: {path: /health, port: http-worker}
      periodSeconds: 10
      timeoutSeconds: 5
    livenessProbe:
      httpGet: {path: /health, port: http-worker}
      periodSeconds: 30
      timeoutSeconds: 15
      failureThreshold: 8
    resources:
      {{- $resources := deepCopy $group.resources }}
      {{- if .gpu }}
      {{- $_ := set $resources.limits $group.resource $group.count }}
      {{- $_ := set $resources.requests $group.resource $group.count }}
      {{- end }}
      {{- toYaml $resources | nindent 6 }}
    volumeMounts:
      {{- include "evdist.daskMounts" $ | nindent 6 }}
      {{- include "evdist.storageMount" $ | nindent 6 }}
volumes:
  {{- include "evdist.daskVolumes" $ | nindent 2 }}
  {{- include "evdist.emptyDir" (list "scratch" $group.scratch) | nindent 2 }}
  {{- include "evdist.storageVolume" $ | nindent 2 }}
{{- end -}}

{{- define "evdist.daskAnnotations" -}}
checksum/dask: {{ include "evdist.daskConfig" . | sha256sum }}
{{- end -}}

{{- define "evdist.schedulerService" -}}
type: ClusterIP
selector:
  {{- include "evdist.selector" (list . "scheduler") | nindent 2 }}
ports:
  - {name: tcp-comm, port: 8786, targetPort: tcp-comm, protocol: TCP}
  - {name: http-dashboard, port: 8787, targetPort: http-dashboard, protocol: TCP}
{{- end -}}
