import type pg from 'pg';

export interface StackHeadRow {
  readonly id: string;
  /** `organization/project/stack`. */
  readonly stack: string;
  readonly version: number;
  readonly head: string | null;
  readonly changedAt: Date;
}

const stacksAtOnce = 5_000;
const firstId = '00000000-0000-0000-0000-000000000000';

/** Uses a separate connection. */
export function createStackHeadRepository(client: pg.Client) {
  return {
    list: async function* (): AsyncGenerator<StackHeadRow> {
      for (let after = firstId; ; ) {
        const { rows } = await client.query<StackHeadRow>(
          `/* stackHeads.list */
           select s.id, o.name || '/' || p.name || '/' || s.name as stack, s.stack_version as version,
             s.checkpoint_id as head, greatest(s.updated_at, s.created_at) as "changedAt"
           from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
           where s.deleted_at is null and s.id > $1 order by s.id limit ${stacksAtOnce}`,
          [after],
        );
        yield* rows;
        const last = rows.at(-1);
        if (!last || rows.length < stacksAtOnce) return;
        after = last.id;
      }
    },
  };
}
export type StackHeadRepository = ReturnType<typeof createStackHeadRepository>;
