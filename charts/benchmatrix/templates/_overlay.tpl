{{/* Further fields of the pods of runner and doctor, merged as `kubectl patch` and a profile's `overlay` merge. */}}

{{/* The template of a pod with the overlay in it, as YAML. Argument: list of the root and the template's own YAML. */}}
{{- define "benchmatrix.overlaid" -}}
{{- $overlay := (index . 0).Values.runner.overlay -}}
{{- range ($overlay.spec | default dict).volumes -}}
{{- if has .name (list "tmp" "config" "signing") -}}
{{- fail (printf "runner.overlay.spec.volumes: `%s` is a volume of the chart; take another name" .name) -}}
{{- end -}}
{{- end -}}
{{- range ($overlay.spec | default dict).containers -}}
{{- range .volumeMounts -}}
{{- if has (.mountPath | clean) (list "/tmp" "/etc/benchmatrix" "/etc/benchmatrix-signing") -}}
{{- fail (printf "runner.overlay.spec.containers: %s is where the chart mounts a volume of its own; take another mountPath" .mountPath) -}}
{{- end -}}
{{- end -}}
{{- range get . "env" -}}
{{- if has .name (list "JOB_NAME" "JOB_UID") -}}
{{- fail (printf "runner.overlay.spec.containers: the variable %s is the chart's; take another name" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $template := index . 1 | fromYaml -}}
{{- with $template.Error -}}{{- fail . -}}{{- end -}}
{{- (include "benchmatrix.mergeOverlay" (list $template $overlay "") | fromJson).merged | toYaml -}}
{{- end -}}

{{/* Two values in one, as the JSON of a mapping with the key `merged`: mappings key by key, lists by the names of their items, other lists one after the other. A
value of the overlay goes before. Argument: list of the value, that of the overlay, and the key of both. */}}
{{- define "benchmatrix.mergeOverlay" -}}
{{- $base := index . 0 -}}{{- $added := index . 1 -}}{{- $key := index . 2 -}}
{{- $merged := $added -}}
{{- if and (kindIs "map" $base) (kindIs "map" $added) -}}
{{- $merged = deepCopy $base -}}
{{- range $name, $value := $added -}}
{{- if hasKey $base $name -}}
{{- $value = (include "benchmatrix.mergeOverlay" (list (index $base $name) $value $name) | fromJson).merged -}}
{{- end -}}
{{- $_ := set $merged $name $value -}}
{{- end -}}
{{- else if and (kindIs "slice" $base) (kindIs "slice" $added) -}}
{{- $merged = (include "benchmatrix.mergeLists" . | fromJson).merged -}}
{{- end -}}
{{- dict "merged" $merged | toJson -}}
{{- end -}}

{{/* As above, of lists. The keys that tell items apart are those of Kubernetes (x-kubernetes-patch-merge-key). */}}
{{- define "benchmatrix.mergeLists" -}}
{{- $base := index . 0 -}}{{- $added := index . 1 -}}{{- $list := index . 2 -}}
{{- $merged := $base -}}
{{- $id := get (dict "containers" "name" "env" "name" "volumes" "name" "volumeMounts" "mountPath" "hostAliases" "ip") $list -}}
{{- range $item := $added -}}
{{- $replaced := false -}}
{{- $next := list -}}
{{- range $known := $merged -}}
{{- if and $id (eq (toString (get $known $id)) (toString (get $item $id))) -}}
{{- $known = (include "benchmatrix.mergeOverlay" (list $known $item "") | fromJson).merged -}}
{{- $replaced = true -}}
{{- end -}}
{{- $next = append $next $known -}}
{{- end -}}
{{- $merged = $replaced | ternary $next (append $next $item) -}}
{{- end -}}
{{- dict "merged" $merged | toJson -}}
{{- end -}}
