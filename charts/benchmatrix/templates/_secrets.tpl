{{/* Credentials among the values: refused, because every Job, its pods and Helm's own record of the release would have them as text. No message repeats one; so the schema,
whose messages would, lets them pass. */}}

{{/* Not empty where a variable is a credential. Argument: list of its name and its value. */}}
{{- define "benchmatrix.isSecret" -}}
{{- $name := index . 0 | upper | replace "TOKENIZ" "" | replace "APPLICATION_CREDENTIAL" "" -}}
{{- $value := index . 1 | toString -}}
{{- $isNamed := and (regexMatch "SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|CONNECTION_?STRING|WEBHOOK|SLACK|(ACCESS|ACCOUNT|API|CUSTOMER|ENCRYPTION|MASTER|PRIVATE|SAS|SIGNING|SSH|STORAGE)_?KEY" $name) (not (regexMatch "_(FILE|PATH|DIR)$" $name)) -}}
{{- if or $isNamed (regexMatch "(://[^/[:space:]@]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----|\\b(?i:sig|x-amz-signature|x-goog-signature|accountkey)=[^[:space:]&'\"<>;])" $value) (regexMatch "\\b(?i:bearer|basic) +[A-Za-z0-9._~+/-]{16}" $value) -}}
true
{{- end -}}
{{- end -}}

{{/* Fail where a mapping of variables has a credential. Argument: list of the path of the mapping and the mapping, which may be null. */}}
{{- define "benchmatrix.refuseSecretVariables" -}}
{{- $path := index . 0 -}}
{{- range $name, $value := index . 1 -}}
{{- if include "benchmatrix.isSecret" (list $name $value) -}}
{{- fail (printf "%s.%s: is a credential, which would stand in every Job; put it into a Secret of the namespace: for the store `store.secret`, for others `valueFrom.secretKeyRef` of a variable in the overlay" $path $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The same of the containers of an overlay. What is of another kind than a pod has is left to whoever reads the profile. Argument: list of the path of the overlay and the overlay, which may be null. */}}
{{- define "benchmatrix.refuseSecretOverlay" -}}
{{- $path := index . 0 -}}
{{- $spec := (index . 1 | default dict).spec | default dict -}}
{{- range $number, $container := kindIs "slice" $spec.containers | ternary $spec.containers list -}}
{{- $environment := kindIs "map" $container | ternary $container dict | dig "env" list -}}
{{- range $variable := kindIs "slice" $environment | ternary $environment list -}}
{{- $variable = kindIs "map" $variable | ternary $variable dict -}}
{{- with get $variable "value" -}}
{{- include "benchmatrix.refuseSecretVariables" (list (printf "%s.spec.containers[%d].env" $path $number) (dict (get $variable "name" | toString) .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fail where any of the values is a credential. Argument: the root. */}}
{{- define "benchmatrix.refuseSecrets" -}}
{{- include "benchmatrix.refuseSecretVariables" (list "runner.environment" .Values.runner.environment) -}}
{{- include "benchmatrix.refuseSecretVariables" (list "profile.environment" .Values.profile.environment) -}}
{{- include "benchmatrix.refuseSecretOverlay" (list "runner.overlay" .Values.runner.overlay) -}}
{{- include "benchmatrix.refuseSecretOverlay" (list "profile.overlay" .Values.profile.overlay) -}}
{{- if contains "@" .Values.store.url -}}
{{- fail "store.url: has a user or a password; the keys of a store belong into the Secret that `store.secret` names, and the URL is s3://BUCKET/PREFIX" -}}
{{- end -}}
{{- if contains "@" .Values.store.endpointUrl -}}
{{- fail "store.endpointUrl: has a user or a password; the keys of a store belong into the Secret that `store.secret` names, and the URL is http://HOST:PORT" -}}
{{- end -}}
{{- if contains "@" .Values.image.repository -}}
{{- fail "image.repository: has an `@`; a digest belongs into image.digest, and the credentials of a registry into a Secret that imagePullSecrets names" -}}
{{- end -}}
{{- end -}}
