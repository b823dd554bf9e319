import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

const bin = path.join(import.meta.dirname, '../../bin/holdfast.js');

let home: string;
let temporary: string;
beforeEach(() => {
  const base = realpathSync(mkdtempSync(path.join(tmpdir(), 'holdfast-launcher-')));
  home = path.join(base, 'home');
  temporary = path.join(base, 'tmp');
  for (const folder of [home, temporary]) mkdirSync(folder, { mode: 0o700 });
});
afterEach(() => rmSync(path.dirname(home), { recursive: true, force: true }));

const caches = (): string => path.join(home, '.cache');
const cache = (): string => path.join(caches(), 'holdfast', 'compiled');
const filesIn = (folder: string): string[] => readdirSync(folder, { recursive: true, encoding: 'utf8' });

function launch(environment: Readonly<Record<string, string>> = {}, flags: readonly string[] = []) {
  return spawnSync(process.execPath, [...flags, bin, '--version'], {
    env: { PATH: process.env['PATH'], HOME: home, TMPDIR: temporary, ...environment },
    encoding: 'utf8',
  });
}

test('an address has time to answer before another one is tried: by default, Node gives up after 250 ms', () => {
  const print =
    "process.on('exit', () => console.log(process.getBuiltinModule('net').getDefaultAutoSelectFamilyAttemptTimeout()))";
  const { stdout } = launch({}, ['--import', `data:text/javascript,${encodeURIComponent(print)}`]);
  expect(Number(stdout.trim().split('\n').at(-1))).toBeGreaterThanOrEqual(2_000);
});

describe('compiled code', () => {
  afterEach(() => {
    // In either case: the temporary folder is shared by everybody.
    expect(filesIn(temporary)).toEqual([]);
  });

  test('is cached in a folder that only we can access', () => {
    expect(launch()).toMatchObject({ status: 0, stderr: '' });
    expect(filesIn(cache()).length).toBeGreaterThan(5);
    for (const folder of [cache(), path.dirname(cache())]) expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test('is cached where XDG_CACHE_HOME says', () => {
    const elsewhere = path.join(home, 'elsewhere');
    expect(launch({ XDG_CACHE_HOME: elsewhere }).status).toBe(0);
    expect(filesIn(path.join(elsewhere, 'holdfast', 'compiled')).length).toBeGreaterThan(5);
    expect(filesIn(home).filter((name) => name.startsWith('.cache'))).toEqual([]);
  });

  const strange: Record<string, () => void> = {
    'a folder that others may write to': () => {
      mkdirSync(cache(), { recursive: true, mode: 0o700 });
      chmodSync(cache(), 0o777);
    },
    'a folder that others may read': () => {
      mkdirSync(cache(), { recursive: true, mode: 0o700 });
      chmodSync(path.dirname(cache()), 0o755);
    },
    'a folder that others could replace': () => {
      mkdirSync(cache(), { recursive: true, mode: 0o700 });
      chmodSync(caches(), 0o777);
    },
    'a link': () => {
      const target = path.join(home, 'target');
      mkdirSync(target, { mode: 0o700 });
      mkdirSync(path.dirname(cache()), { recursive: true, mode: 0o700 });
      symlinkSync(target, cache());
    },
    'a file': () => {
      mkdirSync(caches(), { mode: 0o700 });
      symlinkSync('/dev/null', path.join(caches(), 'holdfast'));
    },
  };
  for (const [what, make] of Object.entries(strange)) {
    test(`is neither written to nor read from ${what}`, () => {
      make();
      const before = filesIn(home);
      expect(launch()).toMatchObject({ status: 0, stderr: '' });
      expect(filesIn(home)).toEqual(before);
    });
  }

  const asRoot = process.geteuid?.() === 0 ? test : test.skip;
  if (asRoot === test.skip) console.info("Left out: a stranger's cache folder, as only root can make one");
  asRoot("is not kept, nor taken, from a stranger's folder", () => {
    mkdirSync(cache(), { recursive: true, mode: 0o700 });
    chownSync(cache(), 65_534, 65_534);
    expect(launch()).toMatchObject({ status: 0, stderr: '' });
    expect(filesIn(cache())).toEqual([]);
  });

  test('is not cached without a home', () => {
    expect(launch({ HOME: path.join(bin, 'nowhere') })).toMatchObject({ status: 0, stderr: '' });
  });
});
