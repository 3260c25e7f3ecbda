{{/* What every pod that uses the store has to reach: DNS, the store, and whatever gives it its identity. List items. */}}
{{- define "benchmatrix.egress" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
  {{- with .Values.networkPolicy.dns }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if .Values.trialStore.enabled }}
- ports:
    - {protocol: TCP, port: 9000}
  to:
    - podSelector:
        matchLabels:
          {{- include "benchmatrix.selector" (list . "store") | nindent 10 }}
      namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace | quote }}}
{{- else }}
{{- range .Values.networkPolicy.store.cidrs }}
- to:
    - ipBlock: {cidr: {{ . | quote }}}
  ports:
    {{- range $.Values.networkPolicy.store.ports }}
    - {protocol: TCP, port: {{ . | int64 }}}
    {{- end }}
{{- end }}
{{- range .Values.networkPolicy.identity }}
- to:
    - ipBlock: {cidr: {{ .cidr | quote }}}
  ports:
    - {protocol: TCP, port: {{ .port | int64 }}}
{{- end }}
{{- end }}
{{- end -}}
