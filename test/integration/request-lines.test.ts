import { beforeEach, describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { isClustered, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { saveState } from '../support/update-calls.ts';

interface Line {
  readonly reqId?: string;
  readonly msg: string;
  readonly job?: string;
}

let texts: string[] = [];
const lines = (): Line[] => texts.map((text) => JSON.parse(text) as Line);
const idsOf = (msg: string): Set<string | undefined> =>
  new Set(lines().flatMap((line) => (line.msg === msg ? [line.reqId] : [])));

/** Sends each body through the queue. */
const app = testApp(() => ({
  settings: { HOLDFAST_DIRECT_BYTES: '1' },
  log: { write: (text: string) => void texts.push(text) },
}));

beforeEach(() => {
  texts = [];
});

describe('the log lines of a request have its id as reqId', () => {
  test('in the API and in the worker that runs its job', async () => {
    const update = await startUpdate(app, await createStack(app));
    const { headers } = await ok(saveState(app, update, 1));
    const id = headers['x-pulumi-request-id'] as string;
    await until(() => idsOf('request').has(id), 'the API logs the request');
    if (isClustered()) await until(() => idsOf('job').has(id), 'the worker logs the job');
  });

  test('when its job fails', async () => {
    const update = await startUpdate(app, await createStack(app));
    await query(
      app,
      `create function refuse_checkpoints() returns trigger language plpgsql as
       $$ begin raise exception 'the disk is full'; end $$`,
    );
    await query(
      app,
      'create trigger refuse before insert on checkpoints for each row execute function refuse_checkpoints()',
    );
    const { status, headers } = await saveState(app, update, 1);
    await query(app, 'drop trigger refuse on checkpoints');
    expect(status).toBe(503);
    const failures = lines().filter(({ msg }) => msg.startsWith('job failed'));
    expect(failures.length).toBeGreaterThan(1);
    for (const { reqId } of failures) expect(reqId).toBe(headers['x-pulumi-request-id']);
  });

  test('once, and no other, while several requests are served', async () => {
    const stacks = await Promise.all(Array.from({ length: 6 }, () => createStack(app)));
    texts = [];
    const answers = await Promise.all(
      stacks.map(({ auth, path }) => ok(app.call('POST', `${path}/import`, { auth, body: deployment(1) }))),
    );
    const ids = new Set(answers.map(({ headers }) => headers['x-pulumi-request-id'] as string));
    const kinds = isClustered() ? ['request', 'job'] : ['request'];
    for (const kind of kinds) {
      await until(() => idsOf(kind).size === ids.size, `a line ${kind} of each`);
      expect(idsOf(kind)).toEqual(ids);
    }
    for (const text of texts) expect(text.split('"reqId"').length).toBeLessThanOrEqual(2);
  });
});
