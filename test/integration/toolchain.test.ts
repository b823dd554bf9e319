import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BuildPlan } from '../../testkit/toolchain/build-plan.ts';
import { standInInputs } from '../../testkit/toolchain/go-stand-ins.ts';
import { findFittingPulumi } from '../../testkit/toolchain/pulumi-on-path.ts';

const { env } = process;
const before = { path: env['PATH'], choice: env['HOLDFAST_TEST_PULUMI'] };

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'holdfast-toolchain-')));
  delete env['HOLDFAST_TEST_PULUMI'];
});
afterEach(() => {
  env['PATH'] = before.path;
  if (before.choice !== undefined) env['HOLDFAST_TEST_PULUMI'] = before.choice;
  rmSync(folder, { recursive: true, force: true });
});

describe('a Pulumi CLI on PATH', () => {
  /** A program that reports this version, in a folder that is all of PATH except for the shell's. */
  function install(version: string, { withYamlHost = true } = {}): string {
    const home = path.join(folder, 'pulumi-home');
    mkdirSync(home);
    const file = path.join(home, 'pulumi');
    writeFileSync(file, `#!/bin/sh\n${version === '' ? 'exit 3' : `echo ${version}`}\n`);
    chmodSync(file, 0o755);
    if (withYamlHost) writeFileSync(path.join(home, 'pulumi-language-yaml'), '');
    const bin = path.join(folder, 'bin');
    mkdirSync(bin);
    symlinkSync(file, path.join(bin, 'pulumi'));
    env['PATH'] = `${bin}:/usr/bin:/bin`;
    return file;
  }

  test.each(['v3.276.0', 'v3.276.7', 'v3.300.1'])('is used when it is %s', async (version) => {
    const file = install(version);
    expect(await findFittingPulumi()).toBe(file);
  });

  test.each(['v3.275.9', 'v3.142.0', 'v4.0.0', 'v3.277.0-alpha.1', 'nonsense', ''])(
    'is not used when its version is «%s»',
    async (version) => {
      install(version);
      expect(await findFittingPulumi()).toBeNull();
    },
  );

  test('is not used without the YAML host', async () => {
    install('v3.276.0', { withYamlHost: false });
    expect(await findFittingPulumi()).toBeNull();
  });

  test('is not used when the pinned one is requested', async () => {
    install('v3.276.0');
    env['HOLDFAST_TEST_PULUMI'] = 'build';
    expect(await findFittingPulumi()).toBeNull();
  });
});

describe('the estimated build time', () => {
  test('starts from the times measured on two idle cores', () => {
    const plan = new BuildPlan();
    plan.expect('a', 100);
    plan.expect('b', 200);
    expect(plan.secondsLeft()).toBe(300);
    expect(plan.secondsLeft('a', 40)).toBe(260);
  });

  test('is corrected by the time that this machine has taken so far', () => {
    const plan = new BuildPlan();
    plan.expect('a', 100);
    plan.expect('b', 200);
    plan.finish('a', 300);
    expect(plan.secondsLeft('b', 100)).toBe(500);
    // Even longer than that: the times of the other builds are known to be longer.
    plan.expect('c', 10);
    expect(plan.secondsLeft('b', 800)).toBe(40);
  });
});

test('changing a replacement file changes the key of the build', async () => {
  const source = path.join(import.meta.dirname, '../../testkit/toolchain/go/pulumi-without-clouds');
  const modules = ['gocloud.dev'];
  cpSync(source, folder, { recursive: true });
  const inputs = await standInInputs({ folder: source, modules });
  expect(await standInInputs({ folder, modules })).toEqual(inputs);
  writeFileSync(path.join(folder, 'gocloud.dev/blob/s3blob/s3blob.go'), 'package s3blob\n');
  expect(await standInInputs({ folder, modules })).not.toEqual(inputs);
});
