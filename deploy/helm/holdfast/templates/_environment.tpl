{{/* An entry of `env` for a value of `secrets`, if that has a name. */}}
{{- define "holdfast.secretEnv" -}}
{{- with .secret }}
{{- if .name }}
- name: {{ $.variable }}
  valueFrom: { secretKeyRef: { name: {{ .name }}, key: {{ .key }} } }
{{- end }}
{{- end }}
{{- end -}}

{{/* Numbers from values are floating-point, and would be written with an exponent. */}}
{{- define "holdfast.text" -}}
{{- if kindIs "float64" . -}}{{- printf "%.0f" . -}}{{- else -}}{{- toString . -}}{{- end -}}
{{- end -}}

{{/* Whether workers decrypt documents. */}}
{{- define "holdfast.workersDecrypt" -}}
{{- if or .Values.worker.masterKeys (eq (toString .Values.settings.HOLDFAST_ENCRYPT_DOCUMENTS) "true") .Values.settings.HOLDFAST_BUNDLE_URL -}}true{{- end -}}
{{- end -}}

{{/* The entries of `env` of a role that runs Holdfast: secrets only where they are needed. */}}
{{- define "holdfast.env" -}}
{{- $values := .root.Values -}}
{{- $secrets := $values.secrets -}}
{{- $role := .role -}}
{{- $serves := has $role (list "api" "worker") -}}
{{- $opens := or (eq $role "api") (and (eq $role "worker") (include "holdfast.workersDecrypt" .root)) -}}
{{- $database := $secrets.databaseUrl -}}
{{- if and (eq $role "migrate") $secrets.ownerDatabaseUrl.name }}{{- $database = $secrets.ownerDatabaseUrl }}{{- end -}}
{{- $wanted := dict -}}
{{- if ne $role "create-bucket" }}{{- $_ := set $wanted "HOLDFAST_DATABASE_URL" $database }}{{- end -}}
{{- if ne $role "migrate" -}}
{{- $_ := set $wanted "AWS_ACCESS_KEY_ID" $secrets.awsAccessKeyId -}}
{{- $_ := set $wanted "AWS_SECRET_ACCESS_KEY" $secrets.awsSecretAccessKey -}}
{{- end -}}
{{- if $serves -}}
{{- $_ := set $wanted "HOLDFAST_REDIS_URL" $secrets.redisUrl -}}
{{- $_ := set $wanted "HOLDFAST_AUDIT_EXPORT_URL" $secrets.auditExportUrl -}}
{{- end -}}
{{- if $opens -}}
{{- $_ := set $wanted "HOLDFAST_MASTER_KEYS" $secrets.masterKeys -}}
{{- $_ := set $wanted "HOLDFAST_VAULT_TOKEN" $secrets.vaultToken -}}
{{- if $values.settings.HOLDFAST_BUNDLE_URL }}{{- $_ := set $wanted "HOLDFAST_BUNDLE_PASSPHRASE" $secrets.bundlePassphrase }}{{- end -}}
{{- end -}}
{{- if eq $role "api" -}}
{{- $_ := set $wanted "HOLDFAST_DATABASE_REPLICA_URL" $secrets.databaseReplicaUrl -}}
{{- $_ := set $wanted "HOLDFAST_OIDC_CLIENT_SECRET" $secrets.oidcClientSecret -}}
{{- end -}}
{{- if eq $role "worker" -}}
{{- $_ := set $wanted "HOLDFAST_AUDIT_EXPORT_TOKEN" $secrets.auditExportToken -}}
{{- end -}}
{{- $plain := dict "HOLDFAST_PUBLIC_URL" (include "holdfast.publicUrl" .root) -}}
{{- $_ := set $plain "HOLDFAST_S3_BUCKET" (required "s3.bucket: name the bucket" $values.s3.bucket) -}}
{{- $_ := set $plain "HOLDFAST_S3_REGION" $values.s3.region -}}
{{- with $values.s3.endpoint }}{{- $_ := set $plain "HOLDFAST_S3_ENDPOINT" . }}{{- end -}}
{{- with $values.trustedProxies }}{{- $_ := set $plain "HOLDFAST_TRUSTED_PROXIES" . }}{{- end -}}
{{- if and $serves $values.ipv6 -}}
{{- $_ := set $plain "HOLDFAST_LISTEN" "[::]:9090" -}}
{{- $_ := set $plain "HOLDFAST_MANAGEMENT_LISTEN" "[::]:9092" -}}
{{- end -}}
{{- if $serves }}{{- $_ := set $plain "HOLDFAST_SHUTDOWN_SECONDS" $values.shutdownSeconds }}{{- end -}}
{{- if eq $role "api" -}}
{{- $_ := set $plain "HOLDFAST_DRAIN_SECONDS" $values.api.drainSeconds -}}
{{- if $secrets.bootstrap.name }}{{- $_ := set $plain "HOLDFAST_BOOTSTRAP" "/etc/holdfast/bootstrap/file" }}{{- end -}}
{{- end -}}
{{- range $name, $value := $values.settings }}{{- $_ := set $plain $name $value }}{{- end -}}
{{- range $name, $value := $plain }}
- name: {{ $name }}
  value: {{ include "holdfast.text" $value | quote }}
{{- end }}
{{- range $variable, $secret := $wanted }}
{{- include "holdfast.secretEnv" (dict "variable" $variable "secret" $secret) }}
{{- end }}
{{- end -}}
