/** A column, and the table and key to which it leads. */
export interface Step {
  readonly column: string;
  readonly to: string;
  readonly key: string;
}

/**
 * `organization`: each row belongs to one, by its own `organization_id` or by a step. `shared`: small, and read with rows of any
 * organization. `installation`: never joined with rows of an organization in a key.
 */
export type Place = 'shared' | 'installation' | { readonly organization: 'its own column' | Step };

const keys: Readonly<Record<string, string>> = {
  state_indexes: 'stack_id',
  update_limits: 'update_id',
  organizations: 'name',
};

function split(lists: readonly string[]): string[] {
  return lists.flatMap((list) => list.split(' '));
}

function all(lists: readonly string[], place: Place): Record<string, Place> {
  return Object.fromEntries(split(lists).map((name) => [name, place]));
}

function by(column: string, to: string, ...lists: readonly string[]): Record<string, Place> {
  return all(lists, { organization: { column, to, key: keys[to] ?? 'id' } });
}

/** Where the rows of each table belong. */
export const places: Readonly<Record<string, Place>> = {
  ...all(['organizations users api_tokens'], 'shared'),
  ...all(
    [
      'installation blobs blob_holds blob_copies_due blob_places master_keys bundles maintenance_runs processes holdfast_migrations',
      'job_results job_admissions failed_lookups rate_counters update_queue_processes exchanged_id_tokens audit_chaining audit_sending',
      'user_identities user_passwords passkeys sessions sign_in_links sign_in_flows sign_in_attempts sign_in_paces',
    ],
    'installation',
  ),
  ...all(
    [
      'memberships mapped_memberships invitations teams scim_users scim_groups removed_members trusted_issuers roles grants organization_access',
      'organization_quotas organization_storage managed_objects saved_views embeds import_runs',
      'projects former_stack_names stack_listings stack_changes stack_counts stack_storage stack_days refused_runs update_rules webhooks webhook_events',
      'project_days project_day_changes project_day_deliveries project_day_delivery_changes policy_packs policy_groups',
      'audit_events audit_batches audit_chains left_bundled_stacks',
    ],
    { organization: 'its own column' },
  ),
  ...by('project_id', 'projects', 'stacks'),
  ...by(
    'stack_id',
    'stacks',
    'updates update_queue_waiters update_approvals checkpoints journals version_chunks encryption_keys state_index_due state_indexes',
    'drift_runs update_statistics stack_retention imported_previews policy_group_stacks',
  ),
  ...by('stack_id', 'state_indexes', 'stack_resources version_changes resource_changes'),
  ...by(
    'update_id',
    'updates',
    'journal_entries journal_snapshots engine_events event_segments output_losses update_limits imported_versions audit_secret_reads',
  ),
  ...by('update_id', 'update_limits', 'update_limit_changes'),
  ...by('checkpoint_id', 'checkpoints', 'checkpoint_chunks'),
  ...by('team_id', 'teams', 'team_members mapped_team_members scim_waiting_members'),
  ...by('issuer_id', 'trusted_issuers', 'trust_policies'),
  ...by('pack_id', 'policy_packs', 'policy_pack_versions'),
  ...by('group_id', 'policy_groups', 'policy_group_packs'),
  ...by('event_id', 'webhook_events', 'webhook_deliveries'),
  ...by('run_id', 'import_runs', 'import_run_stacks'),
  ...by('view_id', 'saved_views', 'saved_view_pins'),
  ...by('organization', 'organizations', 'bundled_stacks'),
};

/** Returns null if the table has none, or its own column. */
export function stepOf(table: string): Step | null {
  const place = places[table];
  return typeof place === 'object' && place.organization !== 'its own column' ? place.organization : null;
}

export function isOfOrganization(table: string): boolean {
  return typeof places[table] === 'object';
}

/** SQL for the id of the organization of a row of `table`, which the statement calls `alias`. */
export function organizationOf(table: string, alias: string): string {
  const step = stepOf(table);
  if (step === null) return `${alias}.organization_id`;
  const next = `${alias}_${step.column}`;
  const found = step.to === 'organizations' ? `${next}.id` : organizationOf(step.to, next);
  return `(select ${found} from ${step.to} ${next} where ${next}.${step.key} = ${alias}.${step.column})`;
}
