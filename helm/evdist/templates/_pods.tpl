{{/* What all pods and containers have in common. */}}
{{- define "evdist.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "evdist.containerSecurity" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* (list $ "service account" automount) */}}
{{- define "evdist.pod" -}}
{{- $ := index . 0 -}}
serviceAccountName: {{ index . 1 }}
automountServiceAccountToken: {{ index . 2 }}
enableServiceLinks: false
securityContext:
  {{- include "evdist.podSecurity" $ | nindent 2 }}
{{- with $.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "evdist.container" -}}
image: {{ include "evdist.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- include "evdist.containerSecurity" . | nindent 2 }}
{{- end -}}

{{/* (dict "nodeSelector" ... "tolerations" ... "affinity" ... "priorityClassName" ...) */}}
{{- define "evdist.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "evdist.preference" . }}
{{- end -}}

{{- define "evdist.preference" -}}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "evdist.spread" -}}
{{- $ := index . 0 -}}
{{- if $.Values.topologySpread.enabled }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: {{ $.Values.topologySpread.topologyKey }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "evdist.selector" . | nindent 8 }}
{{- end }}
{{- end -}}

{{/* Environment of pods that read and write data and jobs. */}}
{{- define "evdist.storageEnv" -}}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
- name: EVDIST_STORAGE
  value: {{ include "evdist.storageUrl" . | quote }}
{{- with .Values.storage.allowed }}
# With the storage itself, and the data of `helm test`.
- name: EVDIST_ALLOWED
  value: {{ join "," (concat (list (include "evdist.storageUrl" $) "/etc/evdist/test") .) | quote }}
{{- end }}
{{- if eq .Values.storage.kind "s3" }}
{{- with .Values.storage.endpoint }}
- name: AWS_ENDPOINT_URL
  value: {{ . | quote }}
{{- end }}
{{- with .Values.storage.region }}
- name: AWS_DEFAULT_REGION
  value: {{ . | quote }}
{{- end }}
{{- with .Values.storage.existingSecret }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ . }}, key: AWS_ACCESS_KEY_ID}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ . }}, key: AWS_SECRET_ACCESS_KEY}}
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment of pods that call Prefect. */}}
{{- define "evdist.prefectEnv" -}}
- name: PREFECT_API_URL
  value: {{ include "evdist.prefectUrl" . | quote }}
{{- with .Values.prefect.auth.existingSecret }}
- name: PREFECT_API_AUTH_STRING
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $.Values.prefect.auth.key }}}}
{{- end }}
{{- end -}}

{{/* Environment of a client of the Dask cluster. */}}
{{- define "evdist.clientEnv" -}}
- name: EVDIST_SCHEDULER
  value: {{ include "evdist.scheduler" . | quote }}
{{- if .Values.dask.workers.adaptive.enabled }}
- name: EVDIST_WORKERS
  value: {{ .Values.dask.workers.adaptive.maximum | quote }}
{{- end }}
{{- if .Values.tls.enabled }}
- name: EVDIST_TLS_CA
  value: /etc/evdist/tls/ca.crt
- name: EVDIST_TLS_CERT
  value: /etc/evdist/tls/tls.crt
- name: EVDIST_TLS_KEY
  value: /etc/evdist/tls/tls.key
{{- end }}
{{- end -}}

{{- define "evdist.storageMount" -}}
{{- if eq .Values.storage.kind "pvc" }}
- name: data
  mountPath: /data
{{- end }}
{{- end -}}

{{- define "evdist.storageVolume" -}}
{{- if eq .Values.storage.kind "pvc" }}
- name: data
  persistentVolumeClaim: {claimName: {{ include "evdist.claim" . }}}
{{- end }}
{{- end -}}

{{- define "evdist.tlsMount" -}}
{{- if .Values.tls.enabled }}
- name: tls
  mountPath: /etc/evdist/tls
  readOnly: true
{{- end }}
{{- end -}}

{{/* (list $ "secret") */}}
{{- define "evdist.tlsVolume" -}}
{{- if (index . 0).Values.tls.enabled }}
- name: tls
  secret: {secretName: {{ index . 1 }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* (list $ "secret"): Stakater's Reloader replaces the pods when cert-manager has renewed the secret. */}}
{{- define "evdist.reload" -}}
{{- if and (index . 0).Values.tls.enabled (index . 0).Values.tls.reloader }}
annotations:
  secret.reloader.stakater.com/reload: {{ index . 1 }}
{{- end }}
{{- end -}}

{{/* (list "name" "size") */}}
{{- define "evdist.emptyDir" -}}
- name: {{ index . 0 }}
  emptyDir: {sizeLimit: {{ index . 1 }}}
{{- end -}}
