import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { withDatabase } from './global-setup.ts';

/** For a test of migrations, without any table unless it is a copy. */
export interface EmptyDatabase extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
}

/** Creates one on the server of the tests, or a copy of one that has no session; dropped when disposed. */
export async function createEmptyDatabase(original?: EmptyDatabase): Promise<EmptyDatabase> {
  const server = process.env['HOLDFAST_TEST_DATABASE_URL'] as string;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  const name = `test_${process.pid}_${randomBytes(4).toString('hex')}`;
  await admin.query(`create database ${name}${original ? ` template ${original.name} strategy file_copy` : ''}`);
  return {
    name,
    url: withDatabase(server, name),
    [Symbol.asyncDispose]: async () => {
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}
