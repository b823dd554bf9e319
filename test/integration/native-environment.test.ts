import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '../..');

/** What a file leaves, and what remains of it. */
const script = `
import NativeEnvironment from './testkit/native-jest/native-environment.ts';
const { env } = process;
const environment = new NativeEnvironment({ projectConfig: { fakeTimers: {} } });
let ended = 0;
process.on('exit', () => { throw new Error('The first one fails'); });
process.on('exit', () => { ended += 1; });
process.on('exit', () => { throw new Error('The last one fails'); });
process.on('warning', function left() {});
process.on('message', function kept() {});
env.HOLDFAST_TEST_LEFT = '1';
globalThis.leftByFile = 1;
globalThis.__keptByPackage = 1;
globalThis.fetch = () => {};
process.exitCode = Number(env.HOLDFAST_TEST_CODE);
let thrown = null;
try { await environment.teardown(); } catch (error) { thrown = error.message; }
const { exitCode } = process;
process.exitCode = 0;
const names = ['exit', 'warning', 'message'].flatMap((event) => process.listeners(event).map(({ name }) => name));
console.log(JSON.stringify({
  thrown, ended, exitCode: exitCode ?? null, isFetch: fetch.name === 'fetch', variable: env.HOLDFAST_TEST_LEFT ?? null,
  left: globalThis.leftByFile ?? null, kept: globalThis.__keptByPackage ?? null,
  listeners: names.filter((name) => name === 'left' || name === 'kept'),
}));
process.removeAllListeners('message');
`;

test.each([
  ['a code of the file', 3, null],
  ['the code of a log after the end', 1, 1],
])('a listener for the exit that fails keeps nothing from being put back: %s', (_, code, kept) => {
  const { stderr, stdout } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '--eval', script],
    { cwd: root, encoding: 'utf8', env: { ...process.env, HOLDFAST_TEST_CODE: String(code) } },
  );
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual({
    ...{ thrown: 'The first one fails', ended: 1, exitCode: kept, isFetch: true, variable: null },
    ...{ left: null, kept: 1, listeners: ['kept'] },
  });
});
