import { Type } from 'typebox';
import type { Logger } from '../logger/logger.ts';
import { type Queryable, sql } from './sql.ts';

const SettingsRow = Type.Object({ given: Type.String(), effective: Type.String() });

/**
 * Reports a server, database or role whose commits do not wait for the disk. Sessions of this process turn the wait on, except behind a
 * pooler, where statements may run in other sessions and acknowledged writes can be lost.
 */
export async function reportVolatileCommits({
  db,
  logger,
}: {
  readonly db: Queryable;
  readonly logger: Logger;
}): Promise<void> {
  const { effective, given } = await db.one(sql.rows(SettingsRow)`
    /* volatileCommits.read */
    select reset_val as given, setting as effective from pg_settings where name = 'synchronous_commit'`);
  if (effective === 'off')
    logger.error('synchronous_commit is off: a power failure of Postgres loses acknowledged writes; turn it on');
  else if (given === 'off')
    logger.warn('synchronous_commit is off for this server, database or role: sessions of this process turn it on');
}
