import { beforeAll, expect, test } from '@jest/globals';
import type { Page, Route } from 'playwright-core';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { enter, findFlaws, signIn } from '../testkit/web-session.ts';

await suite('edits in the web UI while somebody else edits', { ownServer: true, tools: ['chromium'] }, () => {
  const organization = 'dev-org';
  const web = fileWebServer();
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  let refused: string[];
  let colleague: string;

  async function call(method: string, path: string, body?: object, token = server.token) {
    const response = await fetch(`${server.url}/api/${path}`, {
      method,
      headers: {
        ...{ accept: 'application/vnd.pulumi+8', authorization: `token ${token}` },
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    // biome-ignore lint/suspicious/noExplicitAny: responses of every shape.
    return (response.status === 204 ? null : await response.json()) as any;
  }
  const ofOrganization = (path: string) => `orgs/${organization}/${path}`;

  beforeAll(async () => {
    ({ browser, server } = await web());
    colleague = (await call('POST', ofOrganization('tokens'), { name: 'colleague', admin: true })).tokenValue;
    ({ page, refused } = await signIn(browser, server.url, 'ada'));
  }, scenarioTimeoutMs);
  const open = (path: string) => page.goto(`${server.url}/${organization}/~/${path}`);
  const dialog = () => page.getByRole('dialog');
  const button = (name: string) => dialog().getByRole('button', { name, exact: true });

  /** Saves what a colleague has changed meanwhile, is refused, and loads what is there. */
  async function saveTooLate(save: string, loaded = 'Nothing is saved yet'): Promise<void> {
    await button(save).click();
    await dialog().getByText('after you read it').waitFor();
    expect(await button(save).isEnabled()).toBe(false);
    expect(await findFlaws(page)).toEqual([]);
    await button('Load the current version').click();
    await dialog().getByText(loaded).waitFor();
  }
  async function confirm(save: string): Promise<void> {
    await button(save).click();
    await dialog().waitFor({ state: 'detached' });
  }

  test(
    'a freeze keeps what a colleague has saved in one field and what was typed into another',
    async () => {
      const freeze = { kind: 'freeze', settings: { until: '2098-12-24T18:30:00.000Z' }, note: 'Holidays' };
      const { id } = await call('POST', ofOrganization('update-rules'), freeze);
      await open('rules');
      await page.getByRole('button', { name: /^Edit the freeze/ }).click();
      await dialog().getByLabel('Note').fill('Holidays, all of them');
      const theirs = { ...freeze, settings: { until: '2099-12-24T18:30:00.000Z' }, note: 'Sale' };
      await call('PUT', ofOrganization(`update-rules/${id}`), theirs, colleague);
      await saveTooLate('Save');
      expect(await dialog().getByLabel('Until').inputValue()).toMatch(/^2099-12-24T/);
      expect(await dialog().getByLabel('Note').inputValue()).toBe('Holidays, all of them');
      await confirm('Save');
      expect(await call('GET', ofOrganization(`update-rules/${id}`))).toMatchObject({
        ...{ note: 'Holidays, all of them', settings: theirs.settings },
      });
    },
    scenarioTimeoutMs,
  );

  test(
    'the same for a webhook, a team, a role, an issuer and what roles give',
    async () => {
      const hook = { displayName: 'Chat', payloadUrl: 'https://a.example.com/', active: true };
      const { name } = await call('POST', ofOrganization('hooks'), hook);
      await open(`webhooks/${name}`);
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      await dialog().getByLabel('Name', { exact: true }).fill('Alarms');
      await call('PATCH', ofOrganization(`hooks/${name}`), { filters: ['stack_deleted'] }, colleague);
      await saveTooLate('Save');
      expect(await dialog().getByLabel('Events').inputValue()).toBe('some');
      await confirm('Save');
      expect(await call('GET', ofOrganization(`hooks/${name}`))).toMatchObject({
        ...{ displayName: 'Alarms', filters: ['stack_deleted'] },
      });

      await call('POST', ofOrganization('teams/pulumi'), { name: 'blue' });
      await open('teams/blue');
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      await dialog().getByLabel('Description').fill('Everything blue');
      await call('PATCH', ofOrganization('teams/blue'), { newDisplayName: 'Blue team' }, colleague);
      await saveTooLate('Save');
      await confirm('Save');
      expect(await call('GET', ofOrganization('teams/blue'))).toMatchObject({
        ...{ displayName: 'Blue team', description: 'Everything blue' },
      });

      const details = { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] };
      const role = await call('POST', ofOrganization('roles'), { name: 'Auditor', description: '', details });
      await open('roles');
      await page.getByRole('button', { name: 'Actions for Auditor' }).click();
      await page.getByRole('menuitem', { name: /^Edit/ }).click();
      await dialog().getByLabel('Description').fill('Looks at all of it');
      await call('PATCH', ofOrganization(`roles/${role.id}`), { name: 'Inspector' }, colleague);
      await saveTooLate('Save');
      await confirm('Save');
      expect(await call('GET', ofOrganization(`roles/${role.id}`))).toMatchObject({
        ...{ name: 'Inspector', description: 'Looks at all of it' },
      });

      const issuer = await call('POST', ofOrganization('oidc/issuers'), { name: 'CI', url: 'https://ci.example.com' });
      await open('trust-policies');
      await page.getByRole('button', { name: 'Actions for CI' }).click();
      await page.getByRole('menuitem', { name: /^Edit/ }).click();
      await dialog().getByLabel('Name', { exact: true }).fill('Pipelines');
      await call('PATCH', ofOrganization(`oidc/issuers/${issuer.id}`), { maxExpiration: 600 }, colleague);
      await saveTooLate('Save');
      await confirm('Save');
      expect(await call('GET', ofOrganization(`oidc/issuers/${issuer.id}`))).toMatchObject({
        ...{ name: 'Pipelines', maxExpiration: 600 },
      });

      await open('access');
      await page.getByRole('button', { name: 'Edit role permissions' }).click();
      await dialog().getByLabel('Role permissions').selectOption('none');
      await call('PATCH', ofOrganization('access-policy'), { decryptByRole: false }, colleague);
      await dialog().getByRole('textbox').fill(organization);
      await saveTooLate('Remove permissions');
      expect(await dialog().getByLabel('Role permissions').inputValue()).toBe('none');
      await confirm('Remove permissions');
      expect(await call('GET', ofOrganization('access-policy'))).toMatchObject({ defaultPermissions: [] });
    },
    scenarioTimeoutMs,
  );

  test(
    'what a colleague has changed is not removed before it has been seen',
    async () => {
      const freeze = { kind: 'freeze', settings: { until: '2098-12-24T18:30:00.000Z' }, note: 'Release' };
      const { id } = await call('POST', ofOrganization('update-rules'), freeze);
      await open('rules');
      await page.getByRole('row').filter({ hasText: 'Release' }).getByRole('button', { name: /^Thaw/ }).click();
      await dialog().getByText('Release').waitFor();
      await call('PUT', ofOrganization(`update-rules/${id}`), { ...freeze, note: 'Release, moved' }, colleague);
      await saveTooLate('Thaw', 'Nothing is removed yet');
      await dialog().getByText('Release, moved').waitFor();
      await confirm('Thaw');
      await page.getByRole('row').filter({ hasText: 'Release, moved' }).waitFor({ state: 'detached' });
      await expect(call('GET', ofOrganization(`update-rules/${id}`))).rejects.toThrow('404');

      await call('POST', ofOrganization('teams/pulumi'), { name: 'green', description: 'Trees' });
      await open('teams/green');
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      await dialog().getByRole('textbox').fill('green');
      await call('PATCH', ofOrganization('teams/green'), { newDescription: 'All gardens' }, colleague);
      await saveTooLate('Delete the team', 'Nothing is removed yet');
      await dialog().getByText('All gardens').waitFor();
      await confirm('Delete the team');
      await page.waitForURL(/~\/teams$/);
    },
    scenarioTimeoutMs,
  );

  test(
    'a form keeps what was typed when the session ends, until somebody has signed in again',
    async () => {
      await call('POST', ofOrganization('teams/pulumi'), { name: 'grey' });
      await open('teams/grey');
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      await dialog().getByLabel('Description').fill('A long text');
      await browser.context.clearCookies();
      await button('Save').click();
      await dialog().getByText('Your session has ended').waitFor();
      expect(await findFlaws(page)).toEqual([]);
      const [tab] = await Promise.all([
        browser.context.waitForEvent('page'),
        dialog().getByRole('link', { name: 'Sign in' }).click(),
      ]);
      await enter(tab, server.url, 'ada');
      await tab.close();
      expect(await dialog().getByLabel('Description').inputValue()).toBe('A long text');
      await confirm('Save');
      expect(await call('GET', ofOrganization('teams/grey'))).toMatchObject({ description: 'A long text' });

      // The same of a form that is part of the page.
      await call('POST', 'stacks/dev-org/shop', { stackName: 'inline', tags: {} });
      await page.goto(`${server.url}/dev-org/shop/inline`);
      const main = page.getByRole('main');
      await main.getByRole('button', { name: 'Add a tag', exact: true }).click();
      await main.getByLabel('Name of the tag').fill('owner');
      await main.getByLabel('Value of the tag').fill('A long text');
      await browser.context.clearCookies();
      await main.getByRole('button', { name: 'Add', exact: true }).click();
      await main.getByText('Your session has ended').waitFor();
      expect(await findFlaws(page)).toEqual([]);
      const [other] = await Promise.all([
        browser.context.waitForEvent('page'),
        main.getByRole('link', { name: 'Sign in' }).click(),
      ]);
      await enter(other, server.url, 'ada');
      await other.close();
      await main.getByRole('button', { name: 'Add', exact: true }).click();
      await main.getByLabel('Name of the tag').waitFor({ state: 'detached' });
      expect((await call('GET', 'stacks/dev-org/shop/inline')).tags).toMatchObject({ owner: 'A long text' });
    },
    scenarioTimeoutMs,
  );

  test(
    'a policy is added beside the ones that a colleague has saved meanwhile',
    async () => {
      const { id } = await call('POST', ofOrganization('oidc/issuers'), {
        name: 'Two',
        url: 'https://two.example.com',
      });
      const policy = (sub: string) => ({ decision: 'allow', tokenType: 'organization', rules: { sub } });
      const path = ofOrganization(`auth/policies/${id}`);
      await call('PATCH', path, { policies: [policy('one')] });
      await open('trust-policies');
      const section = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Two', exact: true }) });
      await section.getByRole('button', { name: 'Add a policy' }).click();
      await dialog().getByLabel('Patterns, one per line').fill('mine');
      await call('PATCH', path, { policies: [policy('one'), policy('theirs')] }, colleague);
      await saveTooLate('Add the policy');
      await confirm('Add the policy');
      const { policies } = await call('GET', ofOrganization(`auth/policies/oidcissuers/${id}`));
      expect(policies.map(({ rules }: { rules: { sub: string } }) => rules.sub)).toEqual(['one', 'theirs', 'mine']);
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a tag says which value it replaces, and does not replace one that a colleague has set',
    async () => {
      const stack = 'stacks/dev-org/shop/tagged';
      await call('POST', 'stacks/dev-org/shop', { stackName: 'tagged', tags: { zone: 'eu' } });
      const tags = async () => (await call('GET', stack)).tags;
      await page.goto(`${server.url}/dev-org/shop/tagged`);
      const main = page.getByRole('main');
      const click = (name: string) => main.getByRole('button', { name, exact: true }).click();
      await click('Add a tag');
      await main.getByLabel('Name of the tag').fill('pulumi:project');
      await main.getByText('The CLI sets this tag itself').waitFor();
      expect(await main.getByRole('button', { name: 'Add', exact: true }).isEnabled()).toBe(false);
      await main.getByLabel('Name of the tag').fill('zone');
      await main.getByText('Replaces the value').waitFor();
      expect(await findFlaws(page)).toEqual([]);
      await main.getByLabel('Value of the tag').fill('us');
      await click('Replace');
      await main.getByLabel('Name of the tag').waitFor({ state: 'detached' });
      expect(await tags()).toMatchObject({ zone: 'us' });

      await click('Add a tag');
      await main.getByLabel('Name of the tag').fill('owner');
      await main.getByLabel('Value of the tag').fill('ada');
      // Live data would show the colleague's tag before the click.
      const meanwhile = async (route: Route): Promise<void> => {
        await call('PATCH', `${stack}/tags`, { zone: 'us', owner: 'ben' }, colleague);
        await route.continue();
      };
      await page.route('**/trpc/stacks.setTag*', meanwhile, { times: 1 });
      await click('Add');
      await main.getByText('The stack already has a tag owner').waitFor();
      await main.getByText('Replaces the value').waitFor();
      expect(await tags()).toMatchObject({ owner: 'ben' });
      await click('Replace');
      await main.getByLabel('Name of the tag').waitFor({ state: 'detached' });
      expect(await tags()).toMatchObject({ owner: 'ada' });
    },
    scenarioTimeoutMs,
  );
});
