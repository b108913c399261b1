{{/* The settings that follow from other values. The ops port is for the kubelet and
Prometheus, which are never on a pod's loopback: that is what insecure says; with a
certificate it concerns nothing else. */}}
{{- define "memsvc.ownConfig" -}}
{{ if eq .Values.store "embedded" -}}
data-dir: /var/lib/memsvc
{{ end -}}
grpc-addr: ":7420"
http-addr: ":7421"
ops-addr: ":7422"
insecure: true
log-level: {{ .Values.logging.level }}
log-format: {{ .Values.logging.format }}
drain-timeout: {{ printf "%ds" (int .Values.drainSeconds) }}
{{- if .Values.identity }}
identity-file: /etc/memsvc/identity/identity.yaml
{{- end }}
{{- with .Values.tracing.otlpEndpoint }}
otlp-endpoint: {{ . | quote }}
{{- end }}
{{- if ne .Values.tls.mode "none" }}
tls-cert: /etc/memsvc/tls/tls.crt
tls-key: /etc/memsvc/tls/tls.key
{{- if .Values.tls.clientCA.secretName }}
tls-client-ca: /etc/memsvc/client-ca/{{ .Values.tls.clientCA.key }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The whole settings file. */}}
{{- define "memsvc.config" -}}
{{- include "memsvc.ownConfig" . }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* How a program reaches the database: the one secret that it is given. */}}
{{- define "memsvc.databaseEnv" -}}
{{- with .Values.postgres -}}
- name: MEMSVC_DATABASE_URL
{{- if .existingSecret.name }}
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret.name }}
      key: {{ .existingSecret.key }}
{{- else }}
  value: {{ .url | quote }}
{{- end }}
{{- if .passwordSecret.name }}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ .passwordSecret.name }}
      key: {{ .passwordSecret.key }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "memsvc.databaseCAVolume" -}}
- name: database-ca
  secret:
    secretName: {{ .Values.postgres.caSecret.name }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.postgres.caSecret.key | quote }}, path: ca.crt}
{{- end -}}
