{{/* Values by the names that they had in earlier versions: refused with the new name. The schema lets them pass, for it has no words of its own. */}}
{{- define "benchmatrix.refuseOldKeys" -}}
{{- if hasKey .Values "night" -}}
{{- fail "night: unknown value; it is called `schedule` now, and `night.schedule` is `schedule.cron`" -}}
{{- end -}}
{{- range $old, $new := dict "evict_never" "do_not_disrupt" "job_deadline_seconds" "active_deadline_seconds" "keep_finished_seconds" "ttl_seconds_after_finished" "grace_seconds" "termination_grace_period_seconds" "max_infrastructure_failures" "backoff_limit" -}}
{{- if hasKey $.Values.profile $old -}}
{{- fail (printf "profile.%s: unknown key; it is called `%s` now" $old $new) -}}
{{- end -}}
{{- end -}}
{{- range $name, $pool := .Values.profile.pools -}}
{{- if and (kindIs "map" $pool) (hasKey ($pool | default dict) "nodes") -}}
{{- fail (printf "profile.pools.%s.nodes: unknown key; it is called `node_affinity` now" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
