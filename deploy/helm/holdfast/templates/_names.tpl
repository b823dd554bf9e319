{{- define "holdfast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a role: (dict "root" $ "role" "api"). Without a role: all pods. */}}
{{- define "holdfast.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .role }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/part-of: holdfast
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Name, namespace and labels of an object of a role. */}}
{{- define "holdfast.metadata" -}}
name: {{ include "holdfast.fullname" .root }}{{ with .role }}-{{ . }}{{ end }}{{ with .suffix }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "holdfast.labels" . | nindent 2 }}
{{- end -}}

{{/* The values of a role: create-bucket is createBucket there. */}}
{{- define "holdfast.roleKey" -}}
{{- replace "create-bucket" "createBucket" . -}}
{{- end -}}

{{- define "holdfast.serviceAccount" -}}
{{- $account := (index .root.Values (include "holdfast.roleKey" .role)).serviceAccount -}}
{{- if $account.create -}}
{{- default (printf "%s-%s" (include "holdfast.fullname" .root) .role) $account.name -}}
{{- else -}}
{{- default "default" $account.name -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.image" -}}
{{- $image := ternary .root.Values.web.image .root.Values.image (eq .role "web") -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.publicUrl" -}}
{{- if .Values.publicUrl -}}
{{- .Values.publicUrl -}}
{{- else if .Values.ingress.enabled -}}
{{- printf "%s://%s" (ternary "https" "http" .Values.ingress.tls.enabled) (required "ingress.host: name the host" .Values.ingress.host) -}}
{{- else if .Values.httpRoute.enabled -}}
{{- printf "https://%s" (required "httpRoute.hostnames: name at least one host" (first .Values.httpRoute.hostnames)) -}}
{{- else -}}
{{- fail "publicUrl: name the URL under which people reach the service, or enable ingress or httpRoute" -}}
{{- end -}}
{{- end -}}
