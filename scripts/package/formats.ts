import { spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { normalizeModes, place, put, root, run, sourceDate } from './folders.ts';
import type { Platform } from './platform.ts';
import { manifest } from './program.ts';

/** How to write the files of packages. */
export interface Output {
  readonly folder: string;
  /** Least compression, for tests. */
  readonly isFast: boolean;
}

const { description, name, version } = manifest;

/** Writes the npm package. npm sorts the files and gives all of them the same time. */
export function packForNpm(program: string, { folder }: Output): void {
  run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: program });
}

/** Writes an archive of a folder that runs where it is unpacked. */
export function packTarball(tree: string, platform: Platform, { folder, isFast }: Output): void {
  const parent = path.dirname(tree);
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--hard-dereference'];
  const fixed = ['--sort=name', `--mtime=@${sourceDate()}`, ...owner];
  const file = path.join(folder, `${name}-${version}-${platform.name}.tar.gz`);
  run('tar', [...fixed, '-C', parent, '-I', `gzip -n ${isFast ? '-1' : '-6'}`, '-cf', file, path.basename(tree)]);
}

/** Puts the files of a Linux package into a new folder. */
export function buildLinuxRoot(tree: string, folder: string): void {
  const assets = path.join(root, 'deploy', 'linux');
  place(tree, path.join(folder, 'usr/lib/holdfast'), linkSync);
  place(path.join(assets, 'holdfast'), path.join(folder, 'usr/bin/holdfast'));
  place(path.join(assets, 'holdfast.service'), path.join(folder, 'usr/lib/systemd/system/holdfast.service'));
  place(path.join(assets, 'sysusers.conf'), path.join(folder, 'usr/lib/sysusers.d/holdfast.conf'));
  place(path.join(assets, 'holdfast.env'), path.join(folder, 'etc/holdfast/holdfast.env'));
  const docs = path.join(folder, 'usr/share/doc/holdfast');
  place(path.join(root, 'docs', 'vm.md'), path.join(docs, 'vm.md'));
  place(path.join(root, 'docs', 'settings.md'), path.join(docs, 'settings.md'));
  place(path.join(root, 'LICENSE'), path.join(docs, 'copyright'));
  normalizeModes(folder);
}

/** Writes a Debian package. */
export function packDebian(linuxRoot: string, { debian }: Platform, { folder, isFast }: Output): void {
  const control = path.join(linuxRoot, 'DEBIAN');
  const kilobytes = Math.ceil(sizeOf(linuxRoot) / 1024);
  const fields = [
    'Package: holdfast',
    `Version: ${version}`,
    `Architecture: ${debian}`,
    'Maintainer: The Holdfast authors <noreply@holdfast.invalid>',
    `Installed-Size: ${kilobytes}`,
    'Depends: libc6 (>= 2.28), libstdc++6, systemd | systemd-standalone-sysusers | systemd-sysusers',
    'Section: admin',
    'Priority: optional',
    `Description: ${description}`,
    ' With its own Node and Postgres. A web UI shows stacks, runs and resources.',
  ];
  put(path.join(control, 'control'), `${fields.join('\n')}\n`);
  put(path.join(control, 'conffiles'), '/etc/holdfast/holdfast.env\n');
  for (const script of ['postinst', 'prerm', 'postrm'])
    put(path.join(control, script), readFileSync(path.join(root, 'deploy/linux', script), 'utf8'), 0o755);
  normalizeModes(control);
  const file = path.join(folder, `${name}_${version}_${debian}.deb`);
  const compression = isFast ? ['-Zzstd', '-z1'] : ['-Zxz'];
  run('dpkg-deb', ['--root-owner-group', ...compression, '--build', linuxRoot, file], {
    env: { SOURCE_DATE_EPOCH: sourceDate() },
  });
  rmSync(control, { recursive: true });
}

/** Writes an RPM package. */
export function packRpm(linuxRoot: string, { rpm }: Platform, { folder, isFast }: Output): void {
  const top = mkdtempSync(path.join(tmpdir(), 'holdfast-rpm-'));
  try {
    const defined = {
      _topdir: top,
      _buildhost: 'holdfast',
      _binary_payload: isFast ? 'w1.gzdio' : 'w6.gzdio',
      use_source_date_epoch_as_buildtime: '1',
      clamp_mtime_to_source_date_epoch: '1',
      release_root: linuxRoot,
      release_version: version,
    };
    const defines = Object.entries(defined).flatMap(([key, value]) => ['--define', `${key} ${value}`]);
    const spec = path.join(root, 'deploy/linux/holdfast.spec');
    run('rpmbuild', ['-bb', '--quiet', '--target', `${rpm}-linux`, ...defines, spec], {
      env: { SOURCE_DATE_EPOCH: sourceDate() },
    });
    const built = path.join(top, 'RPMS', rpm as string);
    mkdirSync(folder, { recursive: true });
    for (const file of readdirSync(built)) run('mv', [path.join(built, file), path.join(folder, file)]);
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

/** Throws if a program that writes one of the formats is missing. */
export function assertPrograms(formats: readonly string[]): void {
  const needed = { deb: ['dpkg-deb', 'dpkg'], rpm: ['rpmbuild', 'rpm'] } as const;
  for (const [format, [program, debian]] of Object.entries(needed))
    if (formats.includes(format) && spawnSync(program, ['--version']).status !== 0)
      throw new Error(
        `${program} is needed for ${format} (Debian: apt-get install ${debian}); --formats leaves it out`,
      );
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).reduce(
    (sum, entry) => sum + (entry.isFile() ? statSync(path.join(entry.parentPath, entry.name)).size : 0),
    0,
  );
}
