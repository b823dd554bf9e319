import type { FsckRun } from './fsck-run.ts';
import { createSchemaCheckRepository } from './tables/schema-check-repository.ts';

/** A restore by other tools, or a person, may have disabled constraints. */
export async function checkSchema(run: FsckRun): Promise<void> {
  const { fixes, report } = run;
  const connection = await run.context.db.openSession();
  try {
    const schema = createSchemaCheckRepository(connection.client);
    for (const name of await schema.listDisabled()) report.add('schema', name);
    for (const key of await schema.listForeignKeys()) {
      await run.item('foreign key', key.name, async () => {
        const count = await schema.countViolations(key);
        run.step('foreign keys');
        if (count > 0) report.add('foreign-key', key.name, { detail: `${count} rows of ${key.child}` });
      });
    }
    for (const gap of await schema.listSequenceGaps()) {
      if (fixes) await schema.raiseSequence(gap);
      const detail = `is at ${gap.last}, and ${gap.column} has ${gap.highest}`;
      report.add('sequence', gap.sequence, { detail, isFixed: fixes });
    }
  } finally {
    await connection.end();
  }
}
