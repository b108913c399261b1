{{/*
A name of at most .max characters: what is too long is cut and gets a hash of the
whole, so that two long names that differ at the end stay two names.
*/}}
{{- define "memsvc.fit" -}}
{{- $max := int .max -}}
{{- if gt (len .name) $max -}}
{{- printf "%s-%s" (.name | trunc (int (sub $max 9)) | trimSuffix "-" | trimSuffix ".") (.name | sha256sum | trunc 8) -}}
{{- else -}}
{{- .name | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "memsvc.name" -}}
{{- include "memsvc.fit" (dict "name" (default .Chart.Name .Values.nameOverride) "max" 48) -}}
{{- end -}}

{{/*
The common part of all names. 48 characters leave room for the longest suffix, for the
ordinal and the hash that a StatefulSet appends, and for a pod's own five letters.
*/}}
{{- define "memsvc.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- include "memsvc.fit" (dict "name" .Values.fullnameOverride "max" 48) -}}
{{- else if contains $name .Release.Name -}}
{{- include "memsvc.fit" (dict "name" .Release.Name "max" 48) -}}
{{- else -}}
{{- include "memsvc.fit" (dict "name" (printf "%s-%s" .Release.Name $name) "max" 48) -}}
{{- end -}}
{{- end -}}

{{- define "memsvc.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "memsvc.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "memsvc.tlsSecretName" -}}
{{- if eq .Values.tls.mode "certManager" -}}
{{- printf "%s-tls" (include "memsvc.fullname" .) -}}
{{- else -}}
{{- .Values.tls.secretName -}}
{{- end -}}
{{- end -}}

{{- define "memsvc.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Labels that selectors use: they must never change for a release. */}}
{{- define "memsvc.selectorLabels" -}}
app.kubernetes.io/name: {{ include "memsvc.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: hub
{{- end -}}

{{/* Labels of an object; call with a dict of ctx and component. */}}
{{- define "memsvc.labels" -}}
{{- $own := dict
  "helm.sh/chart" (include "memsvc.fit" (dict "name" (printf "%s-%s" .ctx.Chart.Name .ctx.Chart.Version | replace "+" "_") "max" 63))
  "app.kubernetes.io/name" (include "memsvc.name" .ctx)
  "app.kubernetes.io/instance" .ctx.Release.Name
  "app.kubernetes.io/version" .ctx.Chart.AppVersion
  "app.kubernetes.io/managed-by" .ctx.Release.Service
  "app.kubernetes.io/component" .component
  "app.kubernetes.io/part-of" "memsvc" -}}
{{- toYaml (mergeOverwrite (deepCopy .ctx.Values.commonLabels) $own) -}}
{{- end -}}

{{- define "memsvc.grace" -}}
{{- $need := int (add .Values.preStopSeconds .Values.drainSeconds) -}}
{{- default (int (add $need 10)) (int .Values.terminationGracePeriodSeconds) -}}
{{- end -}}

{{/* What a command run in a pod needs to reach the hub: its own certificate is trusted as it is. */}}
{{- define "memsvc.execFlags" -}}
{{- if ne .Values.tls.mode "none" }} --hub {{ include "memsvc.fullname" . }}:{{ .Values.service.grpc.port }} --ca-file /etc/memsvc/tls/tls.crt{{ end -}}
{{- end -}}
