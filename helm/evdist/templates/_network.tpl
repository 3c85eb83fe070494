{{/* Peers of a NetworkPolicy. (list $ "component" ...): pods of this release. */}}
{{- define "evdist.peers" -}}
{{- $ := index . 0 -}}
{{- range rest . }}
- podSelector:
    matchLabels:
      {{- include "evdist.selector" (list $ .) | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "evdist.namespacePeer" -}}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ . }}
{{- end -}}

{{/* (list port ...) */}}
{{- define "evdist.ports" -}}
{{- range . }}
- {protocol: TCP, port: {{ . }}}
{{- end }}
{{- end -}}

{{/* Egress to what lies outside the release: (dict "cidrs" ... "ports" ...) */}}
{{- define "evdist.outside" -}}
- to:
    {{- range .cidrs }}
    - ipBlock: {cidr: {{ . }}}
    {{- end }}
  ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end -}}

{{/* (list $ "component" "name"): the head of a policy for the pods of one component. */}}
{{- define "evdist.policy" -}}
{{- $ := index . 0 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "evdist.name" $ }}-{{ index . 1 }}
  labels:
    {{- include "evdist.objectLabels" (list $ "network") | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "evdist.selector" . | nindent 6 }}
{{- end -}}

{{/* Egress of pods that call Prefect. */}}
{{- define "evdist.toPrefect" -}}
{{- if .Values.prefect.server.enabled }}
- to:
    {{- include "evdist.peers" (list . "prefect-server") | nindent 4 }}
  ports: [{protocol: TCP, port: 4200}]
{{- else }}
{{ include "evdist.outside" .Values.networkPolicy.externalPrefect }}
{{- end }}
{{- end -}}

{{- define "evdist.toStorage" -}}
{{- if eq .Values.storage.kind "s3" }}
{{ include "evdist.outside" .Values.networkPolicy.storage }}
{{- end }}
{{- end -}}
