import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { hiddenFunctions } from '../support/hidden-functions.ts';
import { testApp } from '../support/test-app.ts';

// What we use of Postgres besides SQL: any role has it on managed services, or we do without. managed-postgres.test.ts runs as such a role.

const app = testApp();
const root = path.join(import.meta.dirname, '../..');
const texts = ['src', 'migrations'].flatMap((folder) =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(sql|ts)$/.test(file) && !file.endsWith('.test.ts'))
    .map((file) => readFileSync(path.join(root, folder, file), 'utf8')),
);
const namesIn = (pattern: RegExp): string[] => [
  ...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => (name as string).toLowerCase()))),
];

test('the schema needs no extension, no language of its own, and nothing that only a superuser may create', async () => {
  const kinds = await query<{ kind: string }>(
    app,
    `select 'extension ' || extname as kind from pg_extension
     union select 'language ' || l.lanname from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = 'public'::regnamespace
     union select 'collation ' || c.collname from pg_attribute a join pg_class t on t.oid = a.attrelid join pg_collation c on c.oid = a.attcollation
       where t.relnamespace = 'public'::regnamespace and a.attnum > 0
     union select 'access method ' || a.amname from pg_class t join pg_am a on a.oid = t.relam where t.relnamespace = 'public'::regnamespace
     union select 'kind ' || relkind::text || ' ' || relpersistence::text from pg_class where relnamespace = 'public'::regnamespace
     union select 'schema ' || nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
     union select 'tablespace' from pg_class where relnamespace = 'public'::regnamespace and reltablespace <> 0
     union select 'type ' || t.typname from pg_type t left join pg_class c on c.oid = t.typrelid
       where t.typnamespace = 'public'::regnamespace and t.typcategory not in ('A', 'C')
     union select 'event trigger' from pg_event_trigger union select 'publication' from pg_publication
     union select 'subscription' from pg_stat_subscription union select 'foreign server' from pg_foreign_server
     union select 'policy' from pg_policy union select 'rule' from pg_rewrite r join pg_class c on c.oid = r.ev_class
       where c.relnamespace = 'public'::regnamespace
     union select 'large object' from pg_largeobject_metadata union select 'cast' from pg_cast where oid >= 16384
     union select 'operator' from pg_operator where oid >= 16384 union select 'replication slot' from pg_replication_slots
     order by 1`,
  );
  expect(kinds.map(({ kind }) => kind)).toEqual([
    'access method btree',
    'access method gin',
    'access method heap',
    'collation C',
    'collation default',
    'extension plpgsql',
    // Indexes, partitioned indexes and tables, tables, sequences: all logged.
    'kind I p',
    'kind S p',
    'kind i p',
    'kind p p',
    'kind r p',
    'language plpgsql',
    'language sql',
    'schema public',
  ]);
});

/** About the server: no other function or view of this kind may be named without its line here. */
const aboutServer: Readonly<Record<string, 'hidden' | 'refused' | 'partial' | 'named' | 'optional'>> = {
  // hidden-functions.test.ts shows what works without them.
  ...Object.fromEntries(hiddenFunctions.map((signature) => [signature.replace(/\(.*/, ''), 'hidden' as const])),
  pg_stat_wal_receiver: 'hidden',
  // `holdfast admin site promote` then asks to promote Postgres first.
  pg_promote: 'refused',
  // Without pg_monitor, only the names of other roles' sessions.
  pg_stat_activity: 'partial',
  pg_stat_replication: 'partial',
  // In a message.
  pg_terminate_backend: 'named',
  pg_stat_statements: 'optional',
};
const kind =
  /^pg_(control|walfile|current_wal|last_|stat_(?!user_)|promote|terminate|cancel|read_|ls_|reload|switch|create_|logical|replication|hba_|file_|authid|shadow|subscription)/;

test('every function and view of Postgres that our sources name is for every role, or has a line here', async () => {
  const names = namesIn(/\b(pg_[a-z_]+)\b/g);
  const found = await query<{ name: string; isOpen: boolean }>(
    app,
    `select p.proname as name, bool_and(has_function_privilege('public', p.oid, 'execute')) as "isOpen" from pg_proc p
     where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any ($1) group by 1
     union all
     select c.relname, has_table_privilege('public', c.oid, 'select') from pg_class c
     where c.relnamespace = 'pg_catalog'::regnamespace and c.relname = any ($1) order by 1`,
    [names],
  );
  expect(found.length).toBeGreaterThan(30);
  expect(found.filter(({ isOpen }) => !isOpen).map(({ name }) => name)).toEqual(
    Object.keys(aboutServer).filter((name) => aboutServer[name] === 'refused'),
  );
  expect(names.filter((name) => kind.test(name) && !(name in aboutServer))).toEqual([]);
  expect(Object.keys(aboutServer).filter((name) => !names.includes(name))).toEqual(['pg_stat_get_wal_receiver']);
});

test('statements set only what every role may set, and only for their session', async () => {
  const set = [
    ...namesIn(/\bset_config\(\s*'([a-z_.]+)'/g),
    ...namesIn(/(?:^|[`';])\s*set (?:local |session )?([a-z_.]+) (?:=|to) /gim),
  ];
  const settings = await query<{ name: string; context: string }>(
    app,
    'select name, context from pg_settings where name = any ($1) order by 1',
    [set],
  );
  expect(settings.filter(({ context }) => context !== 'user')).toEqual([]);
  expect(settings.map(({ name }) => name)).toEqual(expect.arrayContaining(['lock_timeout', 'synchronous_commit']));
  const administration =
    /\balter (?:system|database)\b|session_replication_role|\bcreate (?:extension|publication|subscription|event trigger|tablespace)\b/i;
  expect(texts.filter((text) => administration.test(text))).toEqual([]);
});
