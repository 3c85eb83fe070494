{{/* Base job template of the kubernetes work pool: what a flow run's job looks like.
"{{ name }}" in it is Prefect's own placeholder, filled in for each run. */}}
{{- define "evdist.runPod" -}}
{{ include "evdist.pod" (list . (printf "%s" (include "evdist.name" .)) false) }}
# Where Prefect wants these two, though Kubernetes knows them as fields of the job alone.
parallelism: 1
completions: 1
restartPolicy: Never
nodeSelector: "{{ "{{ node_selector }}" }}"
tolerations: "{{ "{{ tolerations }}" }}"
{{- include "evdist.preference" .Values.prefect.runs }}
containers:
  - name: prefect-job
    image: "{{ "{{ image }}" }}"
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: "{{ "{{ command }}" }}"
    securityContext:
      {{- include "evdist.containerSecurity" . | nindent 6 }}
    # Prefect adds its own to these.
    env:
      {{- include "evdist.prefectEnv" . | nindent 6 }}
      {{- include "evdist.clientEnv" . | nindent 6 }}
      {{- include "evdist.storageEnv" . | nindent 6 }}
    resources:
      requests: {cpu: "{{ "{{ cpu_request }}" }}", memory: "{{ "{{ memory_request }}" }}"}
      limits:
        cpu: "{{ "{{ cpu_limit }}" }}"
        memory: "{{ "{{ memory_limit }}" }}"
        {{ .Values.dask.gpu.resource }}: "{{ "{{ gpus }}" }}"
    volumeMounts:
      {{- include "evdist.tlsMount" . | nindent 6 }}
      - name: tmp
        mountPath: /tmp
      {{- include "evdist.storageMount" . | nindent 6 }}
volumes:
  {{- include "evdist.tlsVolume" (list . (include "evdist.clientTlsSecret" .)) | nindent 2 }}
  {{- include "evdist.emptyDir" (list "tmp" .Values.prefect.runs.scratch) | nindent 2 }}
  {{- include "evdist.storageVolume" . | nindent 2 }}
{{- end -}}

{{- define "evdist.jobTemplate" -}}
{{- $runs := .Values.prefect.runs -}}
job_configuration:
  command: "{{ "{{ command }}" }}"
  env: "{{ "{{ env }}" }}"
  labels: "{{ "{{ labels }}" }}"
  name: "{{ "{{ name }}" }}"
  namespace: {{ .Release.Namespace }}
  job_watch_timeout_seconds: "{{ "{{ job_watch_timeout_seconds }}" }}"
  pod_watch_timeout_seconds: "{{ "{{ pod_watch_timeout_seconds }}" }}"
  stream_output: "{{ "{{ stream_output }}" }}"
  job_manifest:
    apiVersion: batch/v1
    kind: Job
    metadata:
      generateName: "{{ "{{ name }}" }}-"
      namespace: {{ .Release.Namespace }}
      annotations: {}
      labels: "{{ "{{ labels }}" }}"
    spec:
      # Prefect starts a run again, Kubernetes does not.
      backoffLimit: 0
      ttlSecondsAfterFinished: "{{ "{{ finished_job_ttl }}" }}"
      template:
        metadata:
          labels:
            {{- include "evdist.selector" (list . "run") | nindent 12 }}
        spec:
          {{- include "evdist.runPod" . | nindent 10 }}
variables:
  type: object
  properties:
    name: {type: string, title: Name, default: evdist-run}
    command: {type: string, title: Command, description: Prefect's own when empty}
    env: {type: object, title: Environment, default: {}, additionalProperties: {type: string}}
    labels: {type: object, title: Labels, default: {}, additionalProperties: {type: string}}
    image: {type: string, title: Image, default: {{ include "evdist.image" . | quote }}}
    cpu_request: {type: string, title: CPU request, default: {{ $runs.resources.requests.cpu | quote }}}
    cpu_limit: {type: string, title: CPU limit, default: {{ $runs.resources.limits.cpu | quote }}}
    memory_request: {type: string, title: Memory request, default: {{ $runs.resources.requests.memory | quote }}}
    memory_limit: {type: string, title: Memory limit, default: {{ $runs.resources.limits.memory | quote }}}
    gpus: {type: integer, title: GPUs, default: 0, minimum: 0}
    node_selector: {type: object, title: Nodes, default: {{ $runs.nodeSelector | toJson }}}
    tolerations: {type: array, title: Tolerations, default: {{ $runs.tolerations | toJson }}}
    finished_job_ttl: {type: integer, title: Seconds a finished job is kept, default: {{ int $runs.keep }}}
    job_watch_timeout_seconds: {type: integer, title: Longest time of a job in seconds}
    pod_watch_timeout_seconds: {type: integer, title: Longest time until a pod starts, default: 600}
    stream_output: {type: boolean, title: Copy the output of the pod, default: false}
{{- end -}}
