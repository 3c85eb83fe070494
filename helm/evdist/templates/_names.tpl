{{/* Names, labels and addresses. */}}
{{- define "evdist.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Of a pod: (list $ "component"). Prefect gives flow runs other names, never another instance. */}}
{{- define "evdist.selector" -}}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "evdist.labels" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
{{ include "evdist.selector" . }}
app.kubernetes.io/part-of: evdist
{{- end -}}

{{- define "evdist.objectLabels" -}}
{{ include "evdist.labels" . }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end -}}

{{- define "evdist.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "evdist.gpuImage" -}}
{{- if or .Values.dask.gpu.image.repository .Values.dask.gpu.image.tag -}}
{{ .Values.dask.gpu.image.repository | default .Values.image.repository }}:{{ .Values.dask.gpu.image.tag | default .Chart.AppVersion }}
{{- else -}}
{{ include "evdist.image" . }}
{{- end -}}
{{- end -}}

{{- define "evdist.tlsSecret" -}}
{{- if eq .Values.tls.source "certManager" -}}
{{ include "evdist.name" . }}-dask-tls
{{- else -}}
{{ .Values.tls.secretName }}
{{- end -}}
{{- end -}}

{{- define "evdist.clientTlsSecret" -}}
{{- if eq .Values.tls.source "certManager" -}}
{{ include "evdist.name" . }}-client-tls
{{- else -}}
{{ .Values.tls.clientSecretName | default .Values.tls.secretName }}
{{- end -}}
{{- end -}}

{{- define "evdist.protocol" -}}
{{ ternary "tls" "tcp" .Values.tls.enabled }}
{{- end -}}

{{- define "evdist.scheduler" -}}
{{ include "evdist.protocol" . }}://{{ include "evdist.name" . }}-scheduler.{{ .Release.Namespace }}.svc:8786
{{- end -}}

{{- define "evdist.prefectUrl" -}}
{{- if .Values.prefect.server.enabled -}}
http://{{ include "evdist.name" . }}-prefect.{{ .Release.Namespace }}.svc:4200/api
{{- else -}}
{{ .Values.prefect.externalUrl }}
{{- end -}}
{{- end -}}

{{- define "evdist.storageUrl" -}}
{{ ternary "/data" .Values.storage.url (eq .Values.storage.kind "pvc") }}
{{- end -}}

{{- define "evdist.claim" -}}
{{ .Values.storage.pvc.existingClaim | default (printf "%s-data" (include "evdist.name" .)) }}
{{- end -}}
