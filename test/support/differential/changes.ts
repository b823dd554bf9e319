/**
 * As SQL, in which `:stack`, `:organization`, `:member` (a user), `:caller` (the token of the call, or the member's), `:latest` (the update
 * that was created last) and `:fresh` (a new id, the same in both databases) are replaced.
 */
const statements = {
  'the token is revoked': 'update api_tokens set revoked_at = now() where id = :caller',
  'the token has expired': 'update api_tokens set expires_at = now() where id = :caller',
  'the user is deactivated': 'update users set deactivated_at = now() where id = :member',
  'the membership ends': 'delete from memberships where user_id = :member',
  'the member may only read': `update memberships set role = 'viewer' where user_id = :member`,
  'the member may not write': `insert into grants (id, organization_id, user_id, effect, permissions) values (:fresh, :organization, :member, 'deny', 12)`,
  'the token may not write': `insert into grants (id, organization_id, token_id, effect, permissions) values (:fresh, :organization, :caller, 'deny', 12)`,
  'members may only preview':
    'update organization_access set default_permissions = 3 where organization_id = :organization',
  'the stack is deleted':
    'update stacks set deleted_at = clock_timestamp(), checkpoint_id = null, active_update_id = null where id = :stack',
  'the stack is renamed': `update stacks set name = 'moved' where id = :stack`,
  'the stack is tagged': `update stacks set tags = '{"env":"x"}' where id = :stack`,
  'another update begins': hold(`'not started'`, `interval '1 hour'`),
  'another update has expired': hold(`'running'`, `interval '-1 hour'`),
  'a call waits': wait(`interval '1 hour'`),
  'the stack is frozen': rule('freeze', '{}'),
  'a rule for another stack is set': rule('freeze', '{}', { project: 'proj', stack: 'other' }),
  'a rule for a tag is set': rule('freeze', '{}', { tag_name: 'env', tag_value: 'x' }),
  'a rule of a later release is set': rule('later', '{}'),
  'updates are limited': rule('concurrency', '{"most":1}'),
  'outputs are watched': rule('consumers', '{"mode":"refuse"}', { project: 'proj' }),
  'deletes are limited': rule('change-limit', '{"changes":0,"withoutJournal":"refuse"}', { project: 'proj' }),
  'a preview is needed': rule('require-preview', '{"mode":"refuse"}'),
  'a fault is found': fault(`'unknown'`, 'null', 'null'),
  'a fault was accepted': fault(`'unknown'`, 'null', 'now()'),
  'a kind of entries is unknown': fault('null', `'left out'`, 'null'),
  'entries are in no checkpoint': `
    with u as (insert into updates (id, stack_id, kind, exclusive, status, expires_at, ended_at, journal_version, stack_version, base_checkpoint_id, checkpoint_id)
      select :fresh, id, 'update', true, 'cancelled', now(), now(), 1, stack_version + 1, checkpoint_id, checkpoint_id from stacks where id = :stack returning id, stack_id),
    j as (insert into journals (update_id, stack_id, entry_count, ended_at) select id, stack_id, 2, now() from u),
    e as (insert into journal_entries (update_id, sequence_id, entry) select u.id, n, e from u, (values ${entries('left')}) as e (n, e))
    update stacks set stack_version = stack_version + 1 where id = :stack`,
  'its lease expires': `update updates set expires_at = clock_timestamp() - interval '1 second' where id = :latest`,
  'its lease is lost': `update updates set end_reason = 'grant-ended' where id = :latest`,
  'its lease is taken away': `select end_active_leases(array[:latest], 'grant-ended')`,
  'the stack is deleted with its updates': `
    with e as (update updates set status = 'cancelled', end_reason = 'cancelled', ended_at = clock_timestamp(), lease_hash = null
      where stack_id = :stack and status in ('not started', 'running'))
    update stacks set deleted_at = clock_timestamp(), checkpoint_id = null, active_update_id = null where id = :stack`,
  'it is taken over': 'update updates set epoch = epoch + 1 where id = :latest',
  'it waits for long': `update updates set expires_at = now() + interval '2 days' where id = :latest`,
  'it is guarded': `
    with g as (insert into update_limits (update_id, limits)
      select id, '{"stack":"s","kind":"update","commit":null,"change-limit":{"scope":"x","note":"","changes":0,"percent":null},"needsJournal":true,"protectedTypes":[]}' from updates where id = :latest)
    update updates set is_limited = true where id = :latest`,
  'it is cancelled': `
    select end_locked_update(u.id, u.stack_id, 'cancelled', 'cancelled', false, u.stack_version, null)
    from updates u where u.id = :latest and u.status in ('not started', 'running')`,
  'it gets entries': `
    with j as (update journals set entry_count = entry_count + 2 where update_id = :latest
      and not exists (select 1 from journal_entries where update_id = :latest and sequence_id = 901) returning update_id)
    insert into journal_entries (update_id, sequence_id, entry) select j.update_id, n, e from j, (values ${entries('late')}) as e (n, e)`,
  'secrets are read': `
    insert into audit_secret_reads (update_id, organization, object, source, calls, read_values, names)
    select :latest, name, name || '/proj/dev', '{"actor":"user","login":"somebody","signIn":"token"}', 1, 1, '{}' from organizations
    where id = :organization on conflict do nothing`,
} as const;

export type ChangeName = keyof typeof statements;
export function changeStatement(name: ChangeName, parts: Readonly<Record<string, string>>): string {
  return statements[name].replace(
    /:(stack|organization|member|caller|latest|fresh)\b/g,
    (_, part: string) => `'${parts[part]}'::uuid`,
  );
}

function hold(status: string, left: string): string {
  return `
    with u as (insert into updates (id, stack_id, kind, exclusive, status, expires_at, stack_version, base_checkpoint_id, checkpoint_id)
      select :fresh, id, 'update', true, ${status}, now() + ${left}, case ${status} when 'running' then stack_version + 1 end, checkpoint_id, checkpoint_id
      from stacks where id = :stack)
    update stacks set active_update_id = :fresh where id = :stack`;
}

function wait(alive: string): string {
  return `
    with p as (insert into update_queue_processes (id, alive_until) values (:fresh, now() + ${alive}))
    insert into update_queue_waiters (id, stack_id, token_id, process_id, kept_until) values (:fresh, :stack, :caller, :fresh, now() + ${alive})`;
}

function rule(kind: string, settings: string, scope: Readonly<Record<string, string>> = {}): string {
  const columns = Object.keys(scope).map((name) => `, ${name}`);
  const values = Object.values(scope).map((value) => `, '${value}'`);
  return `insert into update_rules (id, organization_id, kind, slot, settings${columns.join('')})
    values (:fresh, :organization, '${kind}', (:fresh)::text, '${settings}'${values.join('')})`;
}

function fault(error: string, warning: string, acceptedAt: string): string {
  return `
    with u as (insert into updates (id, stack_id, kind, exclusive, status, expires_at, ended_at)
      values (:fresh, :stack, 'update', true, 'failed', now(), now()) returning id)
    insert into journals (update_id, stack_id, entry_count, compacted_entries, compaction_error, compaction_warning, compacted_at, accepted_at, ended_at)
    select id, :stack, 1, ${error === 'null' ? 1 : 0}, ${error}, ${warning}, now(), ${acceptedAt}, now() from u`;
}

function entries(name: string): string {
  const type = 'pulumi:index:Stash';
  const state = { urn: `urn:pulumi:dev::proj::${type}::${name}`, custom: true, type, inputs: {}, outputs: {} };
  const begin = { version: 1, kind: 0, sequenceID: 901, operationID: 901, removeOld: null, removeNew: null };
  const end = { version: 1, kind: 1, sequenceID: 902, operationID: 901, removeOld: null, removeNew: null, state };
  return [begin, end].map((entry) => `(${entry.sequenceID}, '${JSON.stringify(entry)}')`).join(', ');
}
