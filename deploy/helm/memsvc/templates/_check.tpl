{{/*
What cannot work is refused here, with what to do about it. The schema refuses much of
it too; this also holds where someone skips the schema.
*/}}
{{- define "memsvc.check" -}}
{{- $v := .Values -}}
{{- if not (has $v.store (list "embedded" "postgres")) -}}
  {{- fail (printf "store %q: say embedded or postgres" $v.store) -}}
{{- end -}}
{{- if eq $v.store "embedded" -}}
  {{- if ne (int $v.replicas) 1 -}}
    {{- fail (printf "replicas %d: the embedded store is one file that one process owns; say replicas: 1, or store: postgres" (int $v.replicas)) -}}
  {{- end -}}
  {{- if $v.autoscaling.enabled -}}
    {{- fail "autoscaling: the embedded store has exactly one replica; turn it off, or say store: postgres" -}}
  {{- end -}}
  {{- if and $v.embedded.persistence.existingClaim (not $v.embedded.persistence.enabled) -}}
    {{- fail "embedded.persistence: existingClaim is named and enabled is false; say which of the two" -}}
  {{- end -}}
{{- else -}}
  {{- if and (not $v.postgres.existingSecret.name) (not $v.postgres.url) -}}
    {{- fail "postgres: name the Secret that holds the URL in postgres.existingSecret.name, or give postgres.url and postgres.passwordSecret.name" -}}
  {{- end -}}
  {{- if and $v.postgres.existingSecret.name $v.postgres.url -}}
    {{- fail "postgres: existingSecret and url exclude each other; leave one out" -}}
  {{- end -}}
  {{- if $v.postgres.url -}}
    {{- if regexMatch "^[a-z]+://[^/?#@]*:[^/?#@]*@" $v.postgres.url -}}
      {{- fail "postgres.url holds a password, and values are stored where many can read; put it into a Secret and name that in postgres.passwordSecret.name" -}}
    {{- end -}}
  {{- end -}}
  {{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
    {{- fail "autoscaling: minReplicas is above maxReplicas" -}}
  {{- end -}}
  {{- if and $v.autoscaling.enabled (not $v.autoscaling.targetCPUUtilizationPercentage) (not $v.autoscaling.targetWatchers) -}}
    {{- fail "autoscaling: give targetCPUUtilizationPercentage or targetWatchers" -}}
  {{- end -}}
{{- end -}}
{{- if not (has $v.tls.mode (list "secret" "certManager" "none")) -}}
  {{- fail "tls.mode: say secret (and tls.secretName), certManager (and tls.certManager.issuerRef.name), or none if something else protects the way to the pods" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "secret") (not $v.tls.secretName) -}}
  {{- fail "tls.mode secret: name the Secret with tls.crt and tls.key in tls.secretName" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "certManager") (not $v.tls.certManager.issuerRef.name) -}}
  {{- fail "tls.mode certManager: name the issuer in tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "none") $v.tls.clientCA.secretName -}}
  {{- fail "tls.clientCA: client certificates need tls.mode secret or certManager" -}}
{{- end -}}
{{- if and (index $v.identity "client-certificates") (not $v.tls.clientCA.secretName) -}}
  {{- fail "identity.client-certificates: name the authorities in tls.clientCA.secretName" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "none") $v.gateway.backendTLS.enabled -}}
  {{- fail "gateway.backendTLS: tls.mode is none, so there is no certificate to check" -}}
{{- end -}}
{{- range $kind := list "grpc" "http" -}}
  {{- if and (index $v.ingress $kind).enabled (not (index $v.ingress $kind).host) -}}
    {{- fail (printf "ingress.%s.host: name the host" $kind) -}}
  {{- end -}}
  {{- if and (index $v.gateway $kind).enabled (not (index $v.gateway $kind).parentRefs) -}}
    {{- fail (printf "gateway.%s.parentRefs: name the Gateway" $kind) -}}
  {{- end -}}
{{- end -}}
{{- if and (or $v.ingress.http.enabled $v.gateway.http.enabled) (not $v.service.http.enabled) -}}
  {{- fail "ingress.http and gateway.http need service.http.enabled" -}}
{{- end -}}
{{- $need := int (add $v.preStopSeconds $v.drainSeconds) -}}
{{- if and $v.terminationGracePeriodSeconds (lt (int $v.terminationGracePeriodSeconds) $need) -}}
  {{- fail (printf "terminationGracePeriodSeconds %d: a pod needs preStopSeconds + drainSeconds = %d seconds to end in order; say more, or 0" (int $v.terminationGracePeriodSeconds) $need) -}}
{{- end -}}
{{- $own := include "memsvc.ownConfig" . | fromYaml -}}
{{- range $key, $_ := $v.config -}}
  {{- if or (hasKey $own $key) (has $key (list "data-dir" "database-url" "tls-cert" "tls-key" "tls-client-ca" "identity-file" "otlp-endpoint" "config")) -}}
    {{- fail (printf "config.%s: the chart sets this itself; use its own value for it" $key) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
