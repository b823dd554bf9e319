import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ReadOnlyError } from '../../shared/platform/read-only/read-only-mode.ts';
import { createReadOnlyRepository } from '../../shared/platform/read-only/read-only-repository.ts';

/** Throws ReadOnlyError: data that is imported while the database is being moved would be lost. */
export async function assertWritable(db: Queryable): Promise<void> {
  const { mode } = await createReadOnlyRepository(db).find();
  if (mode) throw new ReadOnlyError(mode);
}
