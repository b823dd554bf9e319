import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { documentedBlock } from '../testkit/documented.ts';
import { holdfastProgram } from '../testkit/holdfast-program.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { ensureToolchain } from '../testkit/toolchain/toolchain.ts';

const token = 'documented-0123456789abcdef0123456789abcdef';

await suite('the documented commands', { ownServer: true }, () => {
  test(
    'work on a new server: the first program, its history, a password, people and quotas',
    async () => {
      const home = await mkdtemp(join(tmpdir(), 'holdfast-documented-'));
      try {
        const bootstrap = join(home, 'bootstrap.json');
        // As the first start leaves it.
        const members = [{ login: 'admin', role: 'admin', token, siteAdmin: true }];
        await writeFile(bootstrap, JSON.stringify({ organizations: [{ name: 'holdfast', members }] }));
        await using server = await startOwnHoldfast({ HOLDFAST_BOOTSTRAP: bootstrap });
        const bin = join(home, 'bin');
        await mkdir(bin);
        const start = `exec ${process.execPath} ${holdfastProgram}`;
        for (const [name, line] of Object.entries({
          holdfast: `${start} "$@"`,
          npx: `[ "$1 $2 $3" = '--no -- holdfast' ] && shift 3; ${start} "$@"`,
        })) {
          await writeFile(join(bin, name), `#!/bin/sh\n${line}\n`);
          await chmod(join(bin, name), 0o755);
        }
        const { 'pulumi-3.276': pulumi } = await ensureToolchain({ only: ['pulumi-3.276'] });
        const env = {
          PATH: [bin, dirname(pulumi), '/usr/bin', '/bin'].join(delimiter),
          HOME: home,
          HOLDFAST_DATA_DIR: server.dataDir,
          PULUMI_ACCESS_TOKEN: token,
          PULUMI_BACKEND_URL: server.url,
          PULUMI_SKIP_UPDATE_CHECK: 'true',
        };
        const run = async (block: string): Promise<string> => {
          const shell = spawn('bash', ['-euo', 'pipefail', '-c', block], { cwd: home, env, stdio: 'pipe' });
          shell.stdin.end();
          const [printed, complaints, [code]] = await Promise.all([
            text(shell.stdout),
            text(shell.stderr),
            once(shell, 'exit'),
          ]);
          if (code !== 0) throw new Error(`exit code ${code} of:\n${block}\n${printed}${complaints}`);
          return printed;
        };

        const updated = await run(documentedBlock('README.md', 'mkdir hello && cd hello'));
        expect(updated).toMatch(/note: +"Hello from my own backend"/);
        expect(updated).toMatch(/Version: 1/);
        expect(await run('npx --no -- holdfast admin user sign-in-link admin')).toMatch(/\/sign-in\/link#hfl-\w+/);
        expect(await run(documentedBlock('docs/deploy.md', 'holdfast admin create-organization acme'))).toMatch(
          /hf-\w+/,
        );
        const quotas = await run(
          documentedBlock(
            'docs/deploy.md',
            'holdfast admin set-quota acme --stacks 200 --updates 20 --bytes 10000000000',
          ),
        );
        expect(quotas).toMatch(/200/);
      } finally {
        await rm(home, { recursive: true, force: true });
      }
    },
    scenarioTimeoutMs,
  );
});
