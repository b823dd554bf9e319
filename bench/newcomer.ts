import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { findAddresses, InstalledService, startUnit } from '../test/support/installed-service.ts';
import { MachineCopy } from '../test/support/machine-copy.ts';
import { PulumiWorkspace } from '../testkit/pulumi-cli.ts';
import { stashProgram } from '../testkit/stash-program.ts';
import { printTable } from './support/measures.ts';

/**
 * The time of a newcomer, from a package to the end of the first `pulumi up`.
 * Installs or unpacks each package, sets up and starts the server, and makes a stack of one resource. Linux, root.
 * Usage: npm run package -- packages && npm run bench newcomer -- [--packages packages]
 */
const { values } = parseArgs({ options: { packages: { type: 'string', default: 'packages' } } });
const folder = path.resolve(values.packages);
const run = promisify(execFile);

function packageWith(end: string): string {
  const name = readdirSync(folder).find((each) => each.endsWith(end));
  if (name === undefined) throw new Error(`there is no *${end} in ${folder}`);
  return path.join(folder, name);
}

/** Seconds until each step has ended, from the beginning. */
async function measure(
  install: (at: string) => Promise<InstalledService>,
  tokenOf: (at: string) => Promise<string>,
): Promise<{ served: number; up: number }> {
  const at = mkdtempSync(path.join(tmpdir(), 'holdfast-newcomer-'));
  const startedAt = performance.now();
  const seconds = (): number => (performance.now() - startedAt) / 1000;
  try {
    await using service = await install(at);
    await service.untilHealthy();
    const served = seconds();
    await using workspace = await PulumiWorkspace.create({
      backendUrl: service.url,
      accessToken: (await tokenOf(at)).trim(),
    });
    await workspace.writeProgram(stashProgram({ project: 'hello', count: 1 }));
    await workspace.runOk(['stack', 'init', 'dev']);
    await workspace.runOk(['up', '--yes']);
    return { served, up: seconds() };
  } finally {
    rmSync(at, { recursive: true, force: true });
  }
}

const addresses = await findAddresses();
const listeners = { HOLDFAST_LISTEN: addresses.listen, HOLDFAST_MANAGEMENT_LISTEN: addresses.managementListen };
const env = { ...process.env, ...listeners };
const start = (program: string, args: readonly string[], cwd: string): InstalledService =>
  new InstalledService(spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] }), addresses.url);
const firstToken = async (at: string): Promise<string> => readFileSync(path.join(at, 'data', 'first-token'), 'utf8');

const tarball = await measure(async (at) => {
  await run('tar', ['-xzf', packageWith('.tar.gz'), '-C', at, '--strip-components=1']);
  return start(path.join(at, 'bin', 'holdfast'), ['server'], at);
}, firstToken);

const npm = await measure(async (at) => {
  await run('npm', ['install', '--no-audit', packageWith('.tgz')], { cwd: at });
  return start('npx', ['holdfast'], at);
}, firstToken);

await using machine = await MachineCopy.create(folder);
const deb = await measure(
  async () => {
    await machine.runOk('apt-get', 'install', '-y', `/mnt/${path.basename(packageWith('.deb'))}`);
    const options = ['--listen', addresses.listen, '--management-listen', addresses.managementListen];
    await machine.runOk('holdfast', 'setup', ...options);
    return startUnit(machine, addresses.url);
  },
  () => machine.runOk('cat', '/var/lib/holdfast/first-token'),
);

printTable(
  ['package', 'seconds until it serves', 'until the first up'],
  Object.entries({ tarball, npm, deb }).map(([name, { served, up }]) => [name, served.toFixed(1), up.toFixed(1)]),
);
