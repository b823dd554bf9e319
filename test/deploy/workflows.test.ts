import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { describeWithTools } from '../support/tools.ts';

const root = path.join(import.meta.dirname, '../..');
const files = globSync('.github/workflows/*.yml', { cwd: root });
const workflow = readFileSync(path.join(root, '.github/workflows/release.yml'), 'utf8');

/** Programs that this machine may or may not have. */
const withoutOthers = ['-no-color', '-shellcheck=', '-pyflakes='];

await describeWithTools('workflows', ['actionlint'], () => {
  const lint = async (...names: string[]): Promise<string> => {
    const { actionlint } = await ensureToolchain({ only: ['actionlint'] });
    return promisify(execFile)(actionlint, [...withoutOthers, ...names], { cwd: root }).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
  };

  test('are valid', async () => {
    expect(files).toEqual(['.github/workflows/release.yml']);
    expect(await lint(...files)).toBe('');
  });

  test('of users call the action that logs in, with inputs that it has', async () => {
    await using folder = await mkdtempDisposable(path.join(tmpdir(), 'holdfast-action-'));
    const at = (...names: string[]): string => path.join(folder.path, ...names);
    mkdirSync(at('.git'));
    mkdirSync(at('.github/workflows'), { recursive: true });
    cpSync(path.join(root, 'deploy/ci/github'), at('.github/actions/pulumi'), { recursive: true });
    const recipe = /```yaml\n(on: [\s\S]*?)```/.exec(readFileSync(path.join(root, 'docs/ci.md'), 'utf8'))?.[1] ?? '';
    const check = async (text: string): Promise<string> => {
      writeFileSync(at('.github/workflows/deploy.yml'), text);
      return lint(at('.github/workflows/deploy.yml'));
    };
    expect(recipe).toContain('uses: ./.github/actions/pulumi');
    expect(await check(recipe)).toBe('');
    expect(await check(recipe.replaceAll('stack:', 'stck:'))).toMatch(/input "stck" is not defined/);
  });

  test('are read by a check that finds faults', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-workflow-'));
    const broken = path.join(folder, 'release.yml');
    writeFileSync(
      broken,
      workflow
        .replace('needs: images', 'needs: imags')
        .replace('steps.server.outputs.digest', 'steps.sever.outputs.digest'),
    );
    const found = await lint(broken);
    rmSync(folder, { recursive: true });
    expect(found).toMatch(/imags/);
    expect(found).toMatch(/sever/);
  });
});

test('the release names each action by its commit, and runs none of its steps with more rights than it needs', () => {
  const actions = [...workflow.matchAll(/uses: (\S+)(.*)$/gm)];
  expect(actions.length).toBeGreaterThan(10);
  expect(
    actions.filter(([, name = '', comment = '']) => !/@[0-9a-f]{40}$/.test(name) || !/^ # v\d/.test(comment)),
  ).toEqual([]);
  expect(workflow).toMatch(/^permissions: \{\}$/m);
});

test('the release starts only after all tests, and with base images that have digests', () => {
  const at = (text: string): number => {
    const position = workflow.indexOf(text);
    expect({ text, isThere: position >= 0 }).toEqual({ text, isThere: true });
    return position;
  };
  expect(at('pin-images.ts --check')).toBeLessThan(at('docker/build-push-action@'));
  expect(at('.ci/run')).toBeLessThan(at('docker/build-push-action@'));
  expect(workflow).toMatch(/ images:\n {4}needs: test\n/);
  expect(workflow).toMatch(/ release:\n {4}needs: images\n/);
});

test('npm run pin-images knows every file that names base images', () => {
  const pinned = [
    ...(
      /const files = \[(.*)\];/.exec(readFileSync(path.join(root, 'scripts/pin-images.ts'), 'utf8'))?.[1] ?? ''
    ).matchAll(/'([^']+)'/g),
  ].map(([, name]) => name);
  const naming = globSync(['**/Dockerfile', '**/*compose*.yml'], {
    cwd: root,
    exclude: (name) => /node_modules|^dist$/.test(String(name)),
  });
  expect(naming.toSorted()).toEqual(pinned.toSorted());
});

test('the component for GitLab uses each of its inputs, and no other', () => {
  const text = readFileSync(path.join(root, 'deploy/ci/gitlab/pulumi.yml'), 'utf8');
  const [header, jobs] = parseAllDocuments(text).map((each) => {
    expect(each.errors).toEqual([]);
    return each.toJS() as Record<string, { readonly inputs: object }>;
  });
  const used = [...JSON.stringify(jobs).matchAll(/\$\[\[ inputs\.([\w-]+) \]\]/g)].map(([, name]) => name);
  expect([...new Set(used)].toSorted()).toEqual(Object.keys(header?.['spec']?.inputs ?? {}).toSorted());
  const given = [...readFileSync(path.join(root, 'docs/ci.md'), 'utf8').matchAll(/inputs: \{([^}]*)\}/g)];
  expect(given.length).toBe(2);
  for (const [, inputs = ''] of given)
    for (const [, name] of inputs.matchAll(/(?:^|, )\s*([\w-]+):/g)) expect(used).toContain(name);
});

test('the release publishes the file that it has packed, and not a repository on GitHub of that name', () => {
  const published = [...workflow.matchAll(/npm publish "?(\S+)/g)].map(([, name]) => name);
  expect(published).toEqual([expect.stringMatching(/^\.\//)]);
});

test('the alerts of the released chart lead to the runbook of the release', () => {
  const [chart = ''] = /- name: Chart\n[\s\S]*?\n {6}- /.exec(workflow) ?? [];
  const [before = '', packed] = chart.split('helm package deploy/helm/holdfast ');
  expect(packed).toBeDefined();
  // In its place is a link to the file with paths.
  expect(before).toContain('cp --remove-destination out/alerts.yml deploy/helm/holdfast/files/alerts.yml');
});
