import { expect, test } from '@jest/globals';
import { runAdmin } from '../testkit/admin-command.ts';
import { expectFailure, expectNothingToDo, Scenario, unattended } from '../testkit/scenario.ts';
import { secret, thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { signIn } from '../testkit/web-session.ts';

const up = ['up', ...unattended];
const removal = ['stack', 'rm', '--force', '--preserve-config', '--yes', '--non-interactive'];

await suite('deleted stacks', { ownServer: true, tools: ['pulumi-3.276', 'test-provider', 'chromium'] }, () => {
  const web = fileWebServer({ viewers: ['vera'] });

  /** A stack with resources and secrets that was removed by force, and the names of its history before. */
  async function removed(scenario: Scenario): Promise<{ readonly state: unknown; readonly history: unknown }> {
    const { project, workspace } = scenario;
    await workspace.writeProgram(
      thingProgram({ project, things: { a: { value: '1', secretValue: secret('hunter2') }, b: { value: '2' } } }),
    );
    await workspace.runOk(['config', 'set', '--secret', 'password', 'hunter3']);
    await workspace.runOk(up);
    await workspace.runOk(['stack', 'tag', 'set', 'owner', 'ada']);
    await workspace.runOk(up);
    const state = await workspace.exportState({ showSecrets: true });
    const history = JSON.parse((await workspace.runOk(['stack', 'history', '--json'])).stdout);
    await workspace.runOk([...removal, '--stack', scenario.stackName('dev')]);
    return { state, history };
  }

  async function expectWhole(
    scenario: Scenario,
    { history, state }: Awaited<ReturnType<typeof removed>>,
  ): Promise<void> {
    const { workspace } = scenario;
    await workspace.runOk(['stack', 'select', scenario.stackName('dev')]);
    expect(await workspace.exportState({ showSecrets: true })).toEqual(state);
    expect(JSON.stringify(state)).toContain('hunter2');
    expect(JSON.parse((await workspace.runOk(['stack', 'history', '--json'])).stdout)).toEqual(history);
    expect((await workspace.runOk(['config', 'get', 'password'])).stdout.trim()).toBe('hunter3');
    expect((await workspace.runOk(['stack', 'tag', 'get', 'owner'])).stdout.trim()).toBe('ada');
    await expectNothingToDo(workspace);
  }

  test(
    'a stack that was removed by force comes back in the browser, with all that it had',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const before = await removed(scenario);
      await expectFailure(workspace, ['stack', 'select', scenario.stackName('dev')], /no stack named/);
      const url = `${holdfast.url}/${holdfast.organization}/~/deleted-stacks`;

      const viewer = await signIn(browser, holdfast.url, 'vera');
      await viewer.page.goto(`${holdfast.url}/${holdfast.organization}/~/members`);
      await viewer.page.getByRole('link', { name: 'Teams' }).waitFor();
      expect(await viewer.page.getByRole('link', { name: 'Deleted stacks' }).count()).toBe(0);
      await viewer.page.goto(url);
      await viewer.page.getByText(/role admin/).waitFor();
      expect(await viewer.page.getByRole('button', { name: /Restore|Delete/ }).count()).toBe(0);
      await viewer.page.close();

      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${holdfast.url}/${holdfast.organization}/~/members`);
      await page.getByRole('link', { name: 'Deleted stacks' }).click();
      const row = page.getByRole('row', { name: new RegExp(`${project}/dev`) });
      await row.getByText('in 6 days').waitFor();
      await row.getByText(/just now|minute/).waitFor();
      await expectSound(page);
      await page.getByRole('button', { name: `Restore ${project}/dev` }).click();
      const dialog = page.getByRole('dialog');
      const action = dialog.getByRole('button', { name: 'Restore', exact: true });
      expect(await action.isDisabled()).toBe(true);
      await dialog.getByLabel(/Type dev to confirm/).fill('dev');
      await expectSound(page);
      await action.click();
      await page.waitForURL(`${holdfast.url}/${holdfast.organization}/${project}/dev`);
      await page.getByRole('heading', { name: 'dev' }).first().waitFor();
      expect(refused).toEqual([]);
      await page.close();
      await expectWhole(scenario, before);
      await workspace.runOk(['destroy', ...unattended]);
    },
    scenarioTimeoutMs,
  );

  test(
    'under another name, the CLI goes on where it was; deleted for good, nothing comes back',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      await removed(scenario);
      await workspace.runOk(['stack', 'init', scenario.stackName('dev'), '--non-interactive']);
      const { page } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${holdfast.url}/${holdfast.organization}/~/deleted-stacks`);
      await page.getByRole('button', { name: `Restore ${project}/dev` }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Another stack is now named').waitFor();
      await dialog.getByLabel('Name').fill('dev');
      await dialog.getByLabel(/Type dev to confirm/).fill('dev');
      await dialog.getByRole('button', { name: 'Restore', exact: true }).click();
      await dialog.getByText("for example 'dev-restored'").waitFor();
      await dialog.getByLabel('Name').fill('dev-restored');
      await dialog.getByRole('button', { name: 'Restore', exact: true }).click();
      await page.waitForURL(`${holdfast.url}/${holdfast.organization}/${project}/dev-restored`);
      const restored = scenario.stackName('dev-restored');
      await workspace.runOk(['stack', 'select', restored]);
      await expectNothingToDo(workspace);
      expect(JSON.stringify(await workspace.exportState({ showSecrets: true }))).toContain('hunter2');

      await workspace.runOk([...removal, '--stack', restored]);
      await page.goto(`${holdfast.url}/${holdfast.organization}/~/deleted-stacks`);
      await page.getByRole('button', { name: `Actions for ${project}/dev-restored` }).click();
      await page.getByRole('menuitem', { name: /Delete for good/ }).click();
      await page
        .getByRole('dialog')
        .getByLabel(/Type dev-restored to confirm/)
        .fill('dev-restored');
      await expectSound(page);
      await page.getByRole('dialog').getByRole('button', { name: 'Delete for good' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.getByRole('row', { name: /dev-restored/ }).waitFor({ state: 'detached' });
      await page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'operators restore it on the command line',
    async () => {
      const { server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const before = await removed(scenario);
      const options = ['--organization', holdfast.organization];
      const listed = await runAdmin(holdfast, 'deleted', 'list', ...options);
      const line = listed.split('\n').find((each) => each.includes(scenario.stackName('dev'))) ?? '';
      expect(line).toMatch(/deleted 20\S+ by \S+ {2}until 20\S+ {2}\d resources/);
      const [id = ''] = line.split(' ');
      expect(await runAdmin(holdfast, 'deleted', 'restore', id, ...options)).toContain('Restored');
      await expectWhole(scenario, before);
      await scenario.workspace.runOk([...removal, '--stack', scenario.stackName('dev')]);
      expect(await runAdmin(holdfast, 'deleted', 'purge', id, ...options)).toContain('can no longer be restored');
      await expect(runAdmin(holdfast, 'deleted', 'restore', id, ...options)).rejects.toThrow();
    },
    scenarioTimeoutMs,
  );
});
