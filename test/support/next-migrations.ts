import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

const directory = path.join(import.meta.dirname, '../../migrations');

/** With the number of their statements. */
export const splitMigrations: Readonly<Record<string, number>> = {
  '0036_stack_troubles': 16,
  '0037_delivery': 8,
  '0038_bounded_reads': 13,
  '0039_project_days': 9,
  '0042_project_deliveries': 11,
  '0044_million_stacks': 10,
  '0061_abandoned_updates': 6,
  '0063_tokens_of_runs': 8,
  '0069_readers': 3,
  '0078_growing_tables': 29,
  '0079_drifted_now': 11,
  '0089_limits_and_holds': 9,
};

/** As a later release may have them: each way in which a migration may run, once. */
export const nextMigrations: Readonly<Record<string, string>> = {
  '9001_stack_notes': `
alter table stacks add column note text not null default '';

create table stack_notes (
  stack_id uuid primary key references stacks (id) on delete cascade,
  note text not null
);
`,
  '9002_updates_by_user': `-- Without a transaction

drop index concurrently if exists updates_by_user;

-- Next statement
create index concurrently updates_by_user on updates (requested_by, number desc) where requested_by is not null;
`,
  '9003_stack_places': `-- Without a transaction

alter table stacks add column if not exists place text;

-- Next statement
create table if not exists stack_places (
  stack_id uuid primary key,
  place text not null
);

-- Next statement
create or replace function note_stack_place() returns trigger language plpgsql as $$
begin
  insert into stack_places (stack_id, place) select new.id, p.name || '/' || new.name from projects p where p.id = new.project_id
  on conflict (stack_id) do update set place = excluded.place;
  return null;
end $$;

-- Next statement
create or replace trigger stacks_place_noted after insert or update of name on stacks
  for each row execute function note_stack_place();

-- Next statement
do $$
declare
  reached uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(id) into ids from (select id from stacks where id > reached order by id limit 500 for share) batch;
    exit when ids is null;
    insert into stack_places (stack_id, place)
    select s.id, p.name || '/' || s.name from stacks s join projects p on p.id = s.project_id where s.id = any (ids)
    on conflict (stack_id) do nothing;
    reached := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;

-- Next statement
analyze stack_places;
`,
};

/** A folder with the migrations of this release, to which those of the next one are added. */
export class MigrationFolder implements AsyncDisposable {
  readonly directory: string;

  private constructor(folder: string) {
    this.directory = folder;
  }

  /** All of this release, or only `names`. */
  static async create(names?: readonly string[]): Promise<MigrationFolder> {
    const folder = new MigrationFolder(await mkdtemp(path.join(tmpdir(), 'holdfast-migrations-')));
    for (const name of names ?? (await MigrationFolder.listBaseline()))
      await copyFile(path.join(directory, `${name}.sql`), folder.pathOf(name));
    return folder;
  }

  /** Names of the migrations of this release, in order. */
  static async listBaseline(): Promise<string[]> {
    const files = (await readdir(directory)).filter((file) => file.endsWith('.sql'));
    return files.map((file) => file.replace(/\.sql$/, '')).sort();
  }

  pathOf(name: string): string {
    return path.join(this.directory, `${name}.sql`);
  }

  /** Adds one, or replaces it. */
  async put(name: string, text: string): Promise<void> {
    await writeFile(this.pathOf(name), text);
  }

  /** Adds those of `nextMigrations`. */
  async putNext(): Promise<void> {
    for (const [name, text] of Object.entries(nextMigrations)) await this.put(name, text);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }
}

/** As many stacks as the batches of a copy need, in one project. */
export const manyStacks = `with o as (insert into organizations (name) values ('o') returning id),
  p as (insert into projects (organization_id, name) select id, 'p' from o returning id)
  insert into stacks (project_id, name) select id, 's' || n from p, generate_series(1, 1200) n`;
