{{/* Further fields of the pods of runner and doctor, added to what the chart says: lists are appended to, and a variable of the same name is replaced. */}}

{{/* The template of a pod with the overlay in it, as YAML. Argument: list of the root and the template's own YAML. */}}
{{- define "benchmatrix.overlaid" -}}
{{- $overlay := (index . 0).Values.runner.overlay -}}
{{- range ($overlay.spec | default dict).volumes -}}
{{- if has .name (list "tmp" "config") -}}
{{- fail (printf "runner.overlay.spec.volumes: `%s` is a volume of the chart; take another name" .name) -}}
{{- end -}}
{{- end -}}
{{- range ($overlay.spec | default dict).containers -}}
{{- range .volumeMounts -}}
{{- if has (.mountPath | clean) (list "/tmp" "/etc/benchmatrix") -}}
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
{{- $spec := $template.spec -}}
{{- $container := first $spec.containers -}}
{{- range ($overlay.spec | default dict).containers -}}
{{- $names := list -}}
{{- range get . "env" -}}{{- $names = append $names .name -}}{{- end -}}
{{- $kept := list -}}
{{- range get $container "env" -}}{{- if not (has .name $names) -}}{{- $kept = append $kept . -}}{{- end -}}{{- end -}}
{{- $_ := set $container "env" $kept -}}
{{- $own := . -}}
{{- range $key := list "env" "envFrom" "volumeMounts" -}}
{{- with get $own $key -}}{{- $_ := set $container $key (concat (get $container $key | default list) .) -}}{{- end -}}
{{- end -}}
{{- $_ = mergeOverwrite $container (omit (deepCopy .) "env" "envFrom" "volumeMounts") -}}
{{- end -}}
{{- $_ := set $spec "volumes" (concat $spec.volumes (($overlay.spec | default dict).volumes | default list)) -}}
{{- $_ = mergeOverwrite $spec (omit ($overlay.spec | default dict | deepCopy) "containers" "volumes") -}}
{{- $_ = mergeOverwrite $template.metadata ($overlay.metadata | default dict | deepCopy) -}}
{{- toYaml $template -}}
{{- end -}}
