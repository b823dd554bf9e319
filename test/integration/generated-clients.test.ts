import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { goBuild } from '../../testkit/toolchain/go-build.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { createStack, ok } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { describeWithTools } from '../support/tools.ts';
import { WireServer } from '../support/wire.ts';

// Most of it is the compiler of Go.
jest.setTimeout(900_000);

const run = promisify(execFile);
const root = path.join(import.meta.dirname, '../..');
const programs = path.join(root, 'test/fixtures/clients');
const page = readFileSync(path.join(root, 'docs/configuration-as-code.md'), 'utf8');

/** The arguments of a command that the page has. */
function documented(command: string): string[] {
  const line = page.split('\n').find((each) => each.includes(command));
  if (line === undefined) throw new Error(`The page has no command ${command}`);
  return line
    .slice(line.indexOf(command) + command.length)
    .trim()
    .split(/ +/);
}

await describeWithTools(
  'a client that is generated from the OpenAPI document',
  ['oapi-codegen', 'openapi-typescript'],
  () => {
    let app: TestApp;
    let server: WireServer;
    let directory: string;
    beforeAll(async () => {
      app = await createTestApp();
      server = await WireServer.listen(app);
      directory = mkdtempSync(path.join(tmpdir(), 'holdfast-clients-'));
      const { text } = await ok(app.call('GET', '/api/openapi.json', { accept: null }));
      writeFileSync(path.join(directory, 'openapi.json'), text);
    });
    afterAll(async () => {
      rmSync(directory, { recursive: true, force: true });
      await app[Symbol.asyncDispose]();
    });

    /** Runs a program that makes three calls, and returns what it has read. */
    const readings = async (file: string, args: readonly string[] = []): Promise<unknown> => {
      const { auth } = await createStack(app);
      const environment = { HOLDFAST_URL: server.url, PULUMI_ACCESS_TOKEN: auth.replace('token ', '') };
      const { stdout } = await run(file, [...args], { cwd: directory, env: { ...process.env, ...environment } });
      return JSON.parse(stdout);
    };
    const read = (stack: string) => ({ user: expect.any(String), stack, tags: expect.any(Object), missing: 404 });

    test('in TypeScript has types that fit its calls, and calls the server', async () => {
      const packages = (await ensureToolchain({ only: ['openapi-typescript'] }))['openapi-typescript'];
      const modules = path.join(packages, 'node_modules');
      symlinkSync(modules, path.join(directory, 'node_modules'));
      writeFileSync(path.join(directory, 'package.json'), '{ "type": "module" }');
      copyFileSync(path.join(programs, 'calls.ts.txt'), path.join(directory, 'calls.ts'));
      const generator = path.join(modules, 'openapi-typescript/bin/cli.js');
      await run(process.execPath, [generator, ...documented('npx openapi-typescript')], { cwd: directory });
      const types = path.join(root, 'node_modules/@types');
      const compiler = [path.join(root, 'node_modules/typescript/bin/tsc'), '--noEmit', '--strict'];
      const flags = ['--module', 'nodenext', '--target', 'es2024', '--allowImportingTsExtensions'];
      const result = await run(
        process.execPath,
        [...compiler, ...flags, '--typeRoots', types, '--types', 'node', 'calls.ts'],
        { cwd: directory },
      ).catch(({ stdout }: { stdout: string }) => ({ stdout }));
      expect(result.stdout).toBe('');
      expect(await readings(process.execPath, ['calls.ts'])).toEqual(read('typescript'));
    });

    test('in Go compiles, and calls the server', async () => {
      const generator = (await ensureToolchain({ only: ['oapi-codegen'] }))['oapi-codegen'];
      const module = path.join(directory, 'go');
      mkdirSync(module);
      for (const name of ['go.mod', 'go.sum'])
        copyFileSync(path.join(root, 'testkit/toolchain/go/oapi-codegen', name), path.join(module, name));
      copyFileSync(path.join(programs, 'main.go'), path.join(module, 'main.go'));
      const args = documented('oapi-codegen -generate').map((each) => (each === 'holdfast' ? 'main' : each));
      await run(generator, ['-generate', ...args], { cwd: directory });
      copyFileSync(path.join(directory, 'holdfast.go'), path.join(module, 'holdfast.go'));
      const build = await goBuild({
        label: 'api-client',
        typicalSeconds: 30,
        module,
        packagePath: '.',
        isSeldomRun: true,
      });
      await build.build(directory);
      expect(await readings(path.join(directory, 'bin/api-client'))).toEqual(read('go'));
    });
  },
);
