import pg from 'pg';
import { OperatorError } from '../errors/errors.ts';

/** The database user of the server lacks permissions. */
export class AppRoleError extends OperatorError {
  override readonly name = 'AppRoleError';
}

export const migrationsOwner = `(select relowner from pg_class where oid = to_regclass('holdfast_migrations'))`;

/**
 * Whether an object belongs to Holdfast, and not to a monitoring tool, an extension or a person. `migrate` keeps one owner for all tables,
 * sequences and functions, and `assertOneOwner` finds tables with another owner.
 */
export function isOurs(alias: string, catalog: 'pg_class' | 'pg_proc' = 'pg_class'): string {
  return `(${alias}.${catalog === 'pg_class' ? 'relowner' : 'proowner'} = ${migrationsOwner} and not exists (
    select 1 from pg_depend e where e.classid = '${catalog}'::regclass and e.objid = ${alias}.oid and e.deptype = 'e'))`;
}

/**
 * Gives a superuser or a member of the owner the role that owns the tables, so that new objects have the same owner. Throws AppRoleError
 * for a member that may not take this role.
 */
export async function actAsOwner(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ owner: string; user: string; maySet: boolean }>(
    `select pg_get_userbyid(owner) as owner, current_user as user,
       pg_has_role(owner, case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end) as "maySet"
     from ${migrationsOwner} as tables (owner) where pg_get_userbyid(owner) <> current_user and pg_has_role(owner, 'member')`,
  );
  for (const { maySet, owner, user } of rows) {
    const name = pg.escapeIdentifier(owner);
    if (!maySet)
      throw new AppRoleError(
        `The database user ${JSON.stringify(user)} may not act as the owner of the tables: grant ${name} to ${pg.escapeIdentifier(user)} with set true`,
      );
    await client.query(`set role ${name}`);
  }
}

/**
 * Server and workers may read and change all rows, use sequences, and call functions. The role owns nothing, so it can neither change the
 * schema nor drop tables. Includes objects of later migrations by the same owner. Repeatable.
 */
export async function grantToApp(client: pg.Client, role: string): Promise<void> {
  const { rows } = await client.query<{ found: boolean }>(
    'select exists (select 1 from pg_roles where rolname = $1) as found',
    [role],
  );
  if (!rows[0]?.found)
    throw new AppRoleError(
      `The database has no role ${JSON.stringify(role)}. Create it first: create role ${pg.escapeIdentifier(role)} login password '…'`,
    );
  const name = pg.escapeIdentifier(role);
  const { rows: ours } = await client.query<{ kind: 'table' | 'sequence' | 'routine'; names: string }>(`
    select kind, string_agg(name, ', ') as names from (
      select case relkind when 'S' then 'sequence' else 'table' end as kind, c.oid::regclass::text as name from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'S') and ${isOurs('c')}
      union all
      select 'routine', p.oid::regprocedure::text from pg_proc p
      where p.pronamespace = 'public'::regnamespace and ${isOurs('p', 'pg_proc')}) as objects group by kind`);
  const rights = { table: 'select, insert, update, delete', sequence: 'usage, select', routine: 'execute' };
  await client.query(`
    begin;
    grant usage on schema public to ${name};
    ${ours.map(({ kind, names }) => `grant ${rights[kind]} on ${kind} ${names} to ${name};`).join('\n    ')}
    alter default privileges in schema public grant ${rights.table} on tables to ${name};
    alter default privileges in schema public grant ${rights.sequence} on sequences to ${name};
    alter default privileges in schema public grant ${rights.routine} on functions to ${name};
    commit`);
}

/** The error names the command that repairs it. */
export async function assertGranted(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; user: string }>(
    `
    select c.relname as name, current_user as user from pg_class c
    where c.relnamespace = 'public'::regnamespace and ${isOurs('c')} and case c.relkind
      when 'S' then not (has_sequence_privilege(c.oid, 'usage') and has_sequence_privilege(c.oid, 'select'))
      when 'r' then not c.relispartition and not has_all_privileges
      when 'p' then not has_all_privileges
      else false end
    union all
    select p.proname, current_user from pg_proc p
    where p.pronamespace = 'public'::regnamespace and ${isOurs('p', 'pg_proc')} and not has_function_privilege(p.oid, 'execute')
    order by name limit 3`.replaceAll('has_all_privileges', allPrivileges),
  );
  const [first] = rows;
  if (!first) return;
  throw new AppRoleError(
    `The database user ${JSON.stringify(first.user)} lacks rights (${rows.map(({ name }) => name).join(', ')}). ` +
      `As the owner of the tables, run \`holdfast migrate --app-role ${first.user}\`.`,
  );
}

const allPrivileges = `(has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
  and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))`;
