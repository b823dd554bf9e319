import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import type { PulumiWorkspace } from '../testkit/pulumi-cli.ts';
import { expectNothingToDo, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { reference, secret, type ThingInputs, thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findFlaws, signIn } from '../testkit/web-session.ts';

const hostileReadme = `# The web

Runs the [site](https://web.example/), see [click](javascript:window.hacked=1) and [file](file:///etc/passwd).

<script>window.hacked=1</script><img src=x onerror="window.hacked=1">

![pixel](https://evil.example/pixel.png) ![](data:image/svg+xml,x)

| part | owner |
| ---- | ----- |
| web  | ada   |
`;

async function gitOf({ programDir }: PulumiWorkspace) {
  const git = async (...args: string[]): Promise<string> => {
    const own = ['-c', 'user.name=e2e', '-c', 'user.email=e2e@example.com', ...args];
    return (await promisify(execFile)('git', own, { cwd: programDir })).stdout.trim();
  };
  await git('init', '-q');
  await git('remote', 'add', 'origin', 'https://github.com/acme/web.git');
  return {
    /** Commits the program, and returns the commit's name as pages show it. */
    commit: async (): Promise<string> => {
      await git('add', '.');
      await git('commit', '-q', '-m', 'change');
      return (await git('rev-parse', 'HEAD')).slice(0, 8);
    },
  };
}

await suite('the state of a stack in the browser', {
  ownServer: true,
  tools: ['pulumi-3.276', 'test-provider', 'chromium'],
}, () => {
  const web = fileWebServer({ viewers: ['vera'] });

  test(
    'properties are blamed on commits, and an earlier version is restored',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const git = await gitOf(workspace);
      const url = `${holdfast.url}/${holdfast.organization}/${project}/dev`;
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      const up = async (things: { [name: string]: ThingInputs }): Promise<string> => {
        await workspace.writeProgram(thingProgram({ project, things, outputs: { readme: hostileReadme } }));
        const commit = await git.commit();
        await workspace.runOk(['up', ...unattended]);
        return commit;
      };
      const untilBlamed = (name: string, text: string) =>
        until(
          async () => {
            await page.goto(`${url}?tab=resources&blame=1&urn=${encodeURIComponent(scenario.thing(name))}`);
            const inputs = page.getByRole('list', { name: 'Inputs' });
            const line = inputs.getByRole('listitem').filter({ hasText: /^value/ });
            await line.getByText(/version|known/).waitFor();
            return ((await line.textContent()) ?? '').includes(text);
          },
          `${name}: ${text}`,
          { everyMs: 500 },
        );
      const secretValue = secret('top secret');
      const first = await up({ a: { value: '1', secretValue }, b: { value: '1' } });
      // The index follows some seconds behind.
      await untilBlamed('b', `version 1${first}`);
      const second = await up({ a: { value: '2', secretValue }, b: { value: '1' }, c: { value: '1' } });
      await untilBlamed('a', `version 2${second}`);
      const commitLink = page.getByRole('link', { name: new RegExp(`^${second}`) }).first();
      const commitPage = new RegExp(`^https://github\\.com/acme/web/commit/${second}`);
      expect(await commitLink.getAttribute('href')).toMatch(commitPage);
      await untilBlamed('b', `version 1${first}`);
      expect(await findFlaws(page)).toEqual([]);

      await page.goto(`${url}?tab=updates`);
      await commitLink.waitFor();
      expect(await commitLink.getAttribute('href')).toMatch(commitPage);
      expect(await findFlaws(page)).toEqual([]);

      await page.goto(`${url}?tab=versions&from=0&to=1`);
      await page.getByRole('button', { name: 'Restore version 1' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('This changes the state, not the cloud').waitFor();
      await dialog.getByRole('listitem').filter({ hasText: 'deleted' }).getByText('c', { exact: true }).waitFor();
      await dialog
        .getByText(/^updated, /)
        .first()
        .waitFor();
      const restore = dialog.getByRole('button', { name: 'Restore version 1' });
      await dialog.getByLabel('Type dev to confirm').fill('prod');
      expect(await restore.isDisabled()).toBe(true);
      expect(await findFlaws(page)).toEqual([]);
      await dialog.getByLabel('Type dev to confirm').fill('dev');
      await restore.click();
      await page.getByRole('button', { name: /Restored version 1/ }).waitFor();
      const preview = outputOf(await workspace.runOk(['preview', '--non-interactive']));
      expect(preview).toMatch(/1 to create/);
      expect(preview).toMatch(/1 to update/);

      await page.goto(`${url}?tab=versions&to=2&show=state`);
      await page.getByText(/^5 resources, /).waitFor();
      await page.getByRole('listitem').filter({ hasText: 'Thing' }).first().click();
      await page.getByRole('list', { name: /^State of urn/ }).waitFor();
      expect(await findFlaws(page)).toEqual([]);
      await page.getByRole('button', { name: 'Text', exact: true }).click();
      await page.getByRole('region', { name: 'State of version 2 as text' }).getByText('"deployment"').waitFor();
      expect(await findFlaws(page)).toEqual([]);
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Download' }).click(),
      ]);
      expect(download.suggestedFilename()).toBe(`${project}-dev-2.json`);
      expect(JSON.parse(await readFile(await download.path(), 'utf8')).deployment.resources).toHaveLength(5);
      expect(await page.content()).not.toContain('top secret');

      await page.goto(url);
      await page.getByRole('heading', { name: 'The web' }).waitFor();
      await page.getByRole('link', { name: /^site/ }).waitFor();
      await page.getByRole('cell', { name: 'ada' }).waitFor();
      await page.getByRole('link', { name: /^pixel/ }).waitFor();
      expect(await page.evaluate('window.hacked')).toBeUndefined();
      expect(await page.locator('main img, main script, a[href^="javascript"], a[href^="file"]').count()).toBe(0);
      expect(await findFlaws(page)).toEqual([]);
      expect(refused).toEqual([]);
      await page.close();

      const viewer = await signIn(browser, holdfast.url, 'vera');
      await viewer.page.goto(`${url}?tab=versions&from=0&to=1`);
      await viewer.page.getByRole('link', { name: 'View update' }).waitFor();
      expect(await viewer.page.getByRole('button', { name: 'Restore version 1', exact: true }).count()).toBe(0);
      await viewer.page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'two stacks are compared',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const up = async (value: string, key: string): Promise<void> => {
        const things = { size: { value, secretValue: secret(key) }, same: { value: 's' } };
        await workspace.writeProgram(thingProgram({ project, things }));
        await workspace.runOk(['up', ...unattended]);
      };
      await up('small', 'one');
      await workspace.runOk(['stack', 'init', scenario.stackName('prod'), '--non-interactive']);
      await up('large', 'two');
      const url = `${holdfast.url}/${holdfast.organization}/${project}/dev`;
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${url}?tab=versions&show=stacks`);
      expect(await findFlaws(page)).toEqual([]);
      await page.getByRole('list', { name: 'Stacks' }).getByRole('button', { name: /prod/ }).click();
      const comparison = page.getByRole('region', { name: 'Comparison with another stack' });
      await comparison.getByText('large', { exact: true }).waitFor();
      await comparison.getByText('small', { exact: true }).waitFor();
      await comparison.getByText(/1 secret was not compared/).waitFor();
      expect(await comparison.getByText('inputs.secretValue').count()).toBe(0);
      expect(await comparison.getByText('same', { exact: true }).count()).toBe(0);
      await page.getByLabel('Show which secrets differ').check();
      await comparison.getByText('inputs.secretValue').waitFor();
      expect(await findFlaws(page)).toEqual([]);
      expect(refused).toEqual([]);
      await page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'a stack that was created anew shows its own versions, not what was read of the former one',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const up = async (name: string): Promise<void> => {
        for (const value of ['1', '2']) {
          await workspace.writeProgram(thingProgram({ project, things: { [name]: { value } } }));
          await workspace.runOk(['up', ...unattended]);
        }
      };
      await up('former');
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${holdfast.url}/${holdfast.organization}/${project}/dev?tab=versions`);
      const differences = page.getByRole('region', { name: 'Differences of versions 1 and 2' });
      await differences.getByText('former', { exact: true }).waitFor();
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Stacks' }).click();
      await workspace.runOk(['stack', 'rm', '--force', '--yes']);
      await workspace.runOk(['stack', 'init', scenario.stackName('dev'), '--non-interactive']);
      await up('fresh');
      await page.getByRole('main').getByRole('link', { name: /dev$/ }).first().click();
      await page.getByRole('link', { name: 'Versions', exact: true }).click();
      await differences.getByText('fresh', { exact: true }).waitFor();
      expect(await differences.getByText('former', { exact: true }).count()).toBe(0);
      await page.getByRole('region', { name: 'Versions', exact: true }).getByRole('button').last().click();
      await page.getByRole('button', { name: 'Restore version 1' }).click();
      await page.getByRole('dialog').getByText('fresh', { exact: true }).waitFor();
      expect(refused).toEqual([]);
      await page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'what a CLI that died has created is added to the state',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const { cloud } = workspace;
      const things = { other: { value: 'y' }, lost: { value: reference('other', 'value') } };
      await workspace.writeProgram(thingProgram({ project, things }));
      await cloud.control({ slowAfterMs: { 'lost.create': 600_000 } });
      const cli = await workspace.spawn(['up', ...unattended]);
      const id = await until(
        async () => [...(await cloud.objects()).values()].find(({ name }) => name.includes('lost'))?.id ?? null,
        'the object',
      );
      await cli.killAll();
      await cloud.control({});
      await workspace.runOk(['cancel', '--yes']);

      const url = `${holdfast.url}/${holdfast.organization}/${project}/dev`;
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(url);
      await page.getByText(/1 operation was interrupted/).waitFor();
      await page.getByRole('link', { name: 'Resolve' }).click();
      await page.getByText('was being created').waitFor();
      await page.getByText(/ended as cancelled/).waitFor();
      const record = page.getByRole('button', { name: 'Save repair' });
      await page.getByLabel('Decision about lost').selectOption('import');
      expect(await record.isDisabled()).toBe(true);
      await page.getByLabel('Id of lost in the cloud').fill(id);
      expect(await findFlaws(page)).toEqual([]);
      await record.click();
      await page.getByRole('dialog').getByRole('button', { name: 'Save as version 2' }).click();
      await page.getByText('No interrupted operations').waitFor();
      await workspace.runOk(['refresh', '--yes', '--skip-preview', '--non-interactive']);
      const { deployment } = await workspace.exportState();
      expect(deployment.pending_operations ?? []).toEqual([]);
      expect(deployment.resources?.find(({ urn }) => urn === scenario.thing('lost'))).toMatchObject({ id });
      await workspace.runOk(['up', ...unattended]);
      await expectNothingToDo(workspace);
      expect((await cloud.objects()).size).toBe(2);
      expect(refused).toEqual([]);
      await page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'a stack says why its last update failed, and a preview what it would delete',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const url = `${holdfast.url}/${holdfast.organization}/${project}/dev`;
      const things = { kept: { value: 'x' }, gone: { value: 'y' } };
      await workspace.writeProgram(thingProgram({ project, things }));
      await workspace.runOk(['up', ...unattended]);
      await workspace.cloud.control({ failUpdate: ['kept'] });
      await workspace.writeProgram(thingProgram({ project, things: { ...things, kept: { value: 'z' } } }));
      expect((await workspace.run(['up', ...unattended])).exitCode).not.toBe(0);
      await workspace.cloud.control({});

      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(url);
      const notice = page.locator('section', { hasText: /Update 2 failed/ }).first();
      await notice.getByText('kept', { exact: true }).waitFor();
      expect(await notice.innerText()).not.toMatch(/error: /);
      expect(await findFlaws(page)).toEqual([]);
      await notice.getByRole('link', { name: 'Open the update' }).click();
      await page.getByRole('region', { name: 'Errors' }).getByText('kept', { exact: true }).waitFor();

      await workspace.writeProgram(thingProgram({ project, things: { kept: { value: 'w' } } }));
      await workspace.runOk(['preview', '--non-interactive']);
      await page.goto(`${url}?tab=updates&previews=1`);
      await page.getByRole('link', { name: 'Preview', exact: true }).first().click();
      const removals = page.getByText('Would delete 1 resource', { exact: true });
      await removals.waitFor();

      // While the events are read, page by page, nothing seems to be known: deletions come last.
      const rest = Promise.withResolvers<void>();
      await page.route(/updates\.events/, async (route) => {
        const asked = new URL(route.request().url());
        const at = asked.pathname.replace('/trpc/', '').split(',').indexOf('updates.events');
        const inputs = JSON.parse(asked.searchParams.get('input') ?? '{}') as Record<number, { cursor?: string }>;
        const isRest = inputs[at]?.cursor === 'the rest';
        if (isRest) await rest.promise;
        delete inputs[at]?.cursor;
        asked.searchParams.set('input', JSON.stringify(inputs));
        // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
        const json = (await (await route.fetch({ url: asked.href })).json()) as any[];
        const { data } = json[at].result;
        if (!isRest) {
          data.items = data.items.filter((event: unknown) => !JSON.stringify(event).includes('"op":"delete"'));
          data.next = 'the rest';
        }
        await route.fulfill({ json });
      });
      await page.reload();
      await page.getByText('The preview is not yet read to its end').waitFor();
      await page.getByText(/resources? so far/).waitFor();
      expect(await removals.count()).toBe(0);
      expect(await page.getByRole('list', { name: 'Deleted or replaced' }).count()).toBe(0);
      expect(await findFlaws(page)).toEqual([]);
      rest.resolve();
      await removals.waitFor();
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.getByRole('list', { name: 'Deleted or replaced' }).getByText('gone', { exact: true }).waitFor();
      expect(await findFlaws(page)).toEqual([]);
      expect(refused).toEqual([]);
      await page.close();
    },
    scenarioTimeoutMs,
  );
});
