import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { AppRoleError, migrationsOwner } from './app-role.ts';
import { migrationsDir } from './migration-files.ts';

const created = /^create (?:unlogged )?table (?:if not exists )?(\w+)/gim;

/** Backups would omit a table of another owner, e.g. one that a superuser restored, as a foreign one. */
export async function assertOneOwner(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ table: string; actual: string; owner: string }>(
    `/* tableOwners.findOther */
     select c.oid::regclass::text as table, pg_get_userbyid(c.relowner) as actual, pg_get_userbyid(${migrationsOwner}) as owner
     from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname = any ($1) and c.relowner is distinct from ${migrationsOwner} order by 1 limit 1`,
    [tableNames()],
  );
  for (const { actual, owner, table } of rows)
    throw new AppRoleError(
      `The table ${table} belongs to ${actual}, and holdfast_migrations to ${owner}. All tables need the same owner: alter table ${table} owner to ${owner}`,
    );
}

function tableNames(): string[] {
  const files = readdirSync(migrationsDir).filter((file) => file.endsWith('.sql'));
  return files.flatMap((file) =>
    [...readFileSync(path.join(migrationsDir, file), 'utf8').matchAll(created)].map(([, name]) => name as string),
  );
}
