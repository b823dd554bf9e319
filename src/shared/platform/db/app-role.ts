import pg from 'pg';
import { OperatorError } from '../errors/errors.ts';

/** The database user of the server lacks permissions. */
export class AppRoleError extends OperatorError {
  override readonly name = 'AppRoleError';
}

/**
 * Grants a role what the server and workers need: read and change all rows, use sequences, call functions. The role owns nothing, so it can neither
 * change the schema nor drop tables. Objects that later migrations of the same owner add are granted to it as well. Repeatable.
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
  await client.query(`
    begin;
    grant usage on schema public to ${name};
    grant select, insert, update, delete on all tables in schema public to ${name};
    grant usage, select on all sequences in schema public to ${name};
    grant execute on all functions in schema public to ${name};
    alter default privileges in schema public grant select, insert, update, delete on tables to ${name};
    alter default privileges in schema public grant usage, select on sequences to ${name};
    alter default privileges in schema public grant execute on functions to ${name};
    commit`);
}

/** Throws AppRoleError if the user of this connection lacks what `grantToApp` grants, with the command that repairs it. */
export async function assertGranted(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; user: string }>(
    `
    select c.relname as name, current_user as user from pg_class c
    where c.relnamespace = 'public'::regnamespace and case c.relkind
      when 'S' then not (has_sequence_privilege(c.oid, 'usage') and has_sequence_privilege(c.oid, 'select'))
      when 'r' then not c.relispartition and not has_all_privileges
      when 'p' then not has_all_privileges
      else false end
    union all
    select p.proname, current_user from pg_proc p
    where p.pronamespace = 'public'::regnamespace and not has_function_privilege(p.oid, 'execute')
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
