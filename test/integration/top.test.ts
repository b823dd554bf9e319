import { beforeAll, describe, expect, test } from '@jest/globals';
import { runInProcess } from '../support/admin.ts';
import { assertOutput } from '../support/outputs.ts';
import { createStack, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
let url: string;
let token: string;
let stack: TestStack;

beforeAll(async () => {
  url = await app.app.listen({ host: '127.0.0.1', port: 0 });
  const admin = async (...words: string[]) => {
    const { code, stderr, stdout } = await runInProcess(app, 'admin', ...words);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  await admin('create-user', 'operator-top', '--site-admin');
  ({ token } = JSON.parse(await admin('user', 'create-token', 'operator-top', '--json')) as { token: string });
  stack = await createStack(app);
  await startUpdate(app, stack);
});

const top = (...words: string[]) => runInProcess(app, 'top', '--url', url, '--token', token, ...words);
const name = (): string => stack.path.replace('/api/stacks/', '');

describe('top', () => {
  test('prints parts, queues and running updates once where there is no terminal', async () => {
    const { code, stderr, stdout } = await top();
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^Holdfast http:\/\/127\.0\.0\.1:\d+ {2}\d\d:\d\d:\d\d UTC\nPostgres \d+\.\d ms {3}blobs \d+\.\d ms\n/,
    );
    expect(stdout).toMatch(/^QUEUE +RUNNING +WAITING +OLDEST +FAILED +WORKERS\n\w+ +\d+ +\d+ +- +\d+ +in the server$/m);
    expect(stdout).toMatch(new RegExp(`^${name()} +update +\\d+ s +\\S+ +0$`, 'm'));
  });

  test('prints JSON with a schema', async () => {
    const { code, stdout } = await top('--json');
    expect(code).toBe(0);
    assertOutput(['top'], stdout);
    const { updates } = JSON.parse(stdout) as { updates: { stack: string }[] };
    expect(updates.map((update) => update.stack)).toContain(name().split('/').at(-1));
  });

  test('says who may use it, and what it cannot reach', async () => {
    const member = stack.auth.slice('token '.length);
    expect(await top('--token', member)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^holdfast: Only site admins/),
    });
    expect(await top('--token', 'none')).toMatchObject({
      code: 1,
      stderr: `holdfast: ${url} does not accept the token\n`,
    });
    const away = await runInProcess(app, 'top', '--url', 'http://127.0.0.1:9', '--token', token);
    expect(away).toMatchObject({ code: 1, stderr: expect.stringMatching(/^holdfast: http:\/\/127\.0\.0\.1:9: /) });
  });
});
