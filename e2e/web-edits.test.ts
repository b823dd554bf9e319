import { beforeAll, expect, test } from '@jest/globals';
import type { Page, Route } from 'playwright-core';
import { callApiOk } from '../testkit/api-call.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { enter, findFlaws, signIn } from '../testkit/web-session.ts';

await suite('edits in the web UI while somebody else edits', { ownServer: true, tools: ['chromium'] }, () => {
  const organization = 'dev-org';
  const web = fileWebServer({ viewers: ['vera'] });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  let refused: string[];
  let colleague: string;

  const call = (method: string, path: string, body?: object, token = server.token) =>
    callApiOk({ url: server.url, token }, method, path, body);
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
  /** What browsers do when somebody comes back to a tab: the page is read again. */
  const comeBack = () => page.evaluate("dispatchEvent(new Event('visibilitychange'))");

  /** The session ends elsewhere: the dialog says so. */
  async function endSession(): Promise<void> {
    await browser.context.clearCookies();
    await comeBack();
    await dialog().getByText('Your session has ended. Sign in').waitFor();
  }
  async function signInAgain(): Promise<void> {
    const [tab] = await Promise.all([
      browser.context.waitForEvent('page'),
      dialog().getByRole('link', { name: 'Sign in' }).click(),
    ]);
    await enter(tab, server.url, 'ada');
    await tab.close();
    await comeBack();
    await dialog().getByText('Your session has ended. Sign in').waitFor({ state: 'detached' });
  }

  /** A stack with a secret output, and an operation that was interrupted. */
  async function makeStack(stack: string): Promise<void> {
    await call('POST', 'stacks/dev-org/shop', { stackName: stack, tags: {} });
    await importState(stack);
  }
  async function importState(stack: string): Promise<void> {
    const path = `stacks/dev-org/shop/${stack}`;
    const plaintext = Buffer.from(JSON.stringify(`secret of ${stack}`)).toString('base64');
    const { ciphertext } = await call('POST', `${path}/encrypt`, { plaintext });
    const dbPassword = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext };
    const [type, bucket] = ['pulumi:pulumi:Stack', 'aws:s3/bucketV2:BucketV2'];
    const urn = (of: string, name: string) => `urn:pulumi:${stack}::shop::${of}::${name}`;
    const root = { urn: urn(type, `shop-${stack}`), custom: false, type, outputs: { dbPassword } };
    const half = { urn: urn(bucket, 'half'), custom: true, type: bucket, parent: root.urn, inputs: {} };
    const provider = { url: server.url, owner: organization, project: 'shop', stack };
    const deployment = {
      manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
      secrets_providers: { type: 'service', state: provider },
      resources: [root],
      pending_operations: [{ resource: half, type: 'creating' }],
    };
    await call('POST', `${path}/import`, { version: 3, deployment });
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
      await call('DELETE', ofOrganization(`update-rules/${id}`));
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
    'the role that a colleague has given is not replaced before it has been seen',
    async () => {
      await open('members');
      await page.getByRole('button', { name: 'Actions for vera' }).click();
      await page.getByRole('menuitem', { name: 'Change the role' }).click();
      await dialog().getByLabel('Role').selectOption('member');
      await call('PATCH', ofOrganization('members/vera'), { role: 'admin' }, colleague);
      await saveTooLate('Change the role');
      await dialog().getByText('The role of vera is admin.').waitFor();
      expect(await dialog().getByLabel('Role').inputValue()).toBe('member');
      await confirm('Change the role');
      expect((await call('GET', ofOrganization('members'))).members).toContainEqual(
        expect.objectContaining({ role: 'member', user: expect.objectContaining({ githubLogin: 'vera' }) }),
      );
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
      await call('POST', ofOrganization('teams/pulumi'), { name: 'gray' });
      await open('teams/gray');
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      await dialog().getByLabel('Description').fill('A long text');
      await browser.context.clearCookies();
      await button('Save').click();
      await dialog().getByText('Your session has ended. Sign in').waitFor();
      expect(await findFlaws(page)).toEqual([]);
      const [tab] = await Promise.all([
        browser.context.waitForEvent('page'),
        dialog().getByRole('link', { name: 'Sign in' }).click(),
      ]);
      await enter(tab, server.url, 'ada');
      await tab.close();
      expect(await dialog().getByLabel('Description').inputValue()).toBe('A long text');
      await confirm('Save');
      expect(await call('GET', ofOrganization('teams/gray'))).toMatchObject({ description: 'A long text' });

      // The same of a form that is part of the page.
      await call('POST', 'stacks/dev-org/shop', { stackName: 'inline', tags: {} });
      await page.goto(`${server.url}/dev-org/shop/inline`);
      const main = page.getByRole('main');
      await main.getByRole('button', { name: 'Add a tag', exact: true }).click();
      await main.getByLabel('Name of the tag').fill('owner');
      await main.getByLabel('Value of the tag').fill('A long text');
      await browser.context.clearCookies();
      await main.getByRole('button', { name: 'Add', exact: true }).click();
      await main.getByText('Your session has ended. Sign in').waitFor();
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
    'a policy that a colleague has edited is not taken for removed',
    async () => {
      const issuer = { name: 'Three', url: 'https://three.example.com' };
      const { id } = await call('POST', ofOrganization('oidc/issuers'), issuer);
      const policy = (sub: string) => ({ decision: 'allow', tokenType: 'organization', rules: { sub } });
      const path = ofOrganization(`auth/policies/${id}`);
      await call('PATCH', path, { policies: [policy('narrow')] });
      await open('trust-policies');
      const section = page
        .locator('section')
        .filter({ has: page.getByRole('heading', { name: 'Three', exact: true }) });
      await section.getByRole('button', { name: 'Actions for the policy' }).click();
      await page.getByRole('menuitem', { name: /^Remove/ }).click();
      await button('Remove the policy').waitFor();
      await call('PATCH', path, { policies: [policy('broad')] }, colleague);
      await comeBack();
      await page.locator('main').getByText('sub = broad').waitFor();
      await saveTooLate('Remove the policy', 'Nothing is removed yet');
      await dialog().getByText('Another user has edited or removed this policy').waitFor();
      expect(await button('Remove the policy').isEnabled()).toBe(false);
      const { policies } = await call('GET', ofOrganization(`auth/policies/oidcissuers/${id}`));
      expect(policies).toMatchObject([{ rules: { sub: 'broad' } }]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a dialog about a stack goes on doing what it was opened for, and keeps what was typed',
    async () => {
      await makeStack('held');
      // Readers do not get at it while a dialog is open.
      const main = page.locator('main');
      const stack = 'stacks/dev-org/shop/held';
      await page.goto(`${server.url}/dev-org/shop/held?tab=access`);
      await page.getByRole('button', { name: 'Place a hold' }).click();
      await dialog().getByLabel('Reason').fill('Case 1');
      await call('PUT', `${stack}/legal-hold`, { reason: 'Case 2' }, colleague);
      await comeBack();
      await main.getByText('Case 2').waitFor();
      await dialog().getByRole('heading', { name: 'Place a legal hold on the stack' }).waitFor();
      await button('Place a hold').click();
      await dialog().getByText('has changed the legal hold').waitFor();
      expect(await call('GET', `${stack}/legal-hold`)).toMatchObject({ held: true, reason: 'Case 2' });
      await button('Cancel').click();
      await page.getByRole('button', { name: 'Release the hold' }).click();
      await dialog().getByText('Case 2').waitFor();
      await call('PUT', `${stack}/legal-hold`, { reason: 'Cases 2 and 3' }, colleague);
      await comeBack();
      await main.getByText('Cases 2 and 3').waitFor();
      await saveTooLate('Release the hold', 'Nothing is removed yet');
      await dialog().getByText('Cases 2 and 3').waitFor();
      await confirm('Release the hold');
      expect(await call('GET', `${stack}/legal-hold`)).toMatchObject({ held: false });

      // All stacks are frozen meanwhile: this one can be, too.
      await page.getByRole('button', { name: 'Freeze', exact: true }).click();
      await dialog().getByLabel('Note').fill('Half of a sentence');
      const freeze = { kind: 'freeze', settings: {}, note: 'Holidays of all' };
      const { id } = await call('POST', ofOrganization('update-rules'), freeze, colleague);
      await comeBack();
      await main.getByText('Holidays of all').waitFor();
      expect(await dialog().getByLabel('Note').inputValue()).toBe('Half of a sentence');
      await button('Cancel').click();
      await page.getByRole('button', { name: 'Freeze', exact: true }).waitFor();
      await call('DELETE', ofOrganization(`update-rules/${id}`));
      await comeBack();
      await main.getByText('Holidays of all').waitFor({ state: 'detached' });

      // What is shown as the newest version stays chosen when there is a newer one.
      await page.getByRole('link', { name: 'Versions', exact: true }).click();
      await page.getByRole('region', { name: 'Differences of versions 0 and 1' }).waitFor();
      await importState('held');
      await comeBack();
      const versions = page.getByRole('region', { name: 'Versions', exact: true });
      await versions.getByRole('listitem').nth(1).waitFor();
      await page.getByRole('button', { name: 'Pin', exact: true }).click();
      await page.getByRole('button', { name: 'Unpin', exact: true }).waitFor();
      await versions.getByRole('listitem').nth(1).getByText('pinned').waitFor();

      // An update that changes nothing leaves a repair that is half done.
      await page
        .getByRole('link', { name: /^Interrupted/ })
        .first()
        .click();
      await page.getByLabel('Decision about half').selectOption('import');
      await page.getByLabel('Id of half in the cloud').fill('bucket-1');
      const { updateID } = await call('POST', `${stack}/update`, {}, colleague);
      await comeBack();
      await main.getByText('An update is running').waitFor();
      expect(await page.getByLabel('Decision about half').isVisible()).toBe(false);
      await call('POST', `${stack}/update/${updateID}/cancel`, {}, colleague);
      await comeBack();
      await main.getByText('An update is running').waitFor({ state: 'detached' });
      expect(await page.getByLabel('Id of half in the cloud').inputValue()).toBe('bucket-1');
      expect(await findFlaws(page)).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'the page of a stack keeps nothing of the stack before it',
    async () => {
      for (const name of ['one', 'two']) {
        await makeStack(name);
        await page.goto(`${server.url}/dev-org/shop/${name}`);
        await page.getByRole('button', { name: 'Add to favorites' }).click();
      }
      const heading = (name: string) => page.getByRole('heading', { name: `shop/${name}` });
      const visit = async (name: string): Promise<void> => {
        await page
          .getByRole('navigation', { name: 'Favorites' })
          .getByRole('link', { name: `shop/${name}` })
          .click();
        await heading(name).waitFor();
        await page.getByRole('table', { name: 'Outputs' }).waitFor();
      };
      const reveal = page.getByRole('button', { name: 'Reveal dbPassword' });
      // The browser has both from here on.
      await visit('one');
      await visit('two');
      await reveal.click();
      await page.getByText('secret of two').waitFor();
      await visit('one');
      expect(await page.getByText('secret of two').count()).toBe(0);

      // The answer comes when its stack is not shown any longer.
      const { promise: isLeft, resolve: leave } = Promise.withResolvers<void>();
      await page.route('**/trpc/secrets.reveal*', async (route) => {
        await isLeft;
        await route.continue();
      });
      const answered = page.waitForResponse(/secrets\.reveal/);
      await reveal.click();
      await visit('two');
      leave();
      await (await answered).finished();
      await page.unroute('**/trpc/secrets.reveal*');
      // Or when nobody sees the tab.
      await page.route('**/trpc/secrets.reveal*', async (route) => {
        await page.evaluate(
          "Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })",
        );
        await route.continue();
      });
      const came = page.waitForResponse(/secrets\.reveal/);
      await reveal.click();
      await (await came).finished();
      await reveal.and(page.locator(':enabled')).waitFor();
      await page.unroute('**/trpc/secrets.reveal*');
      await page.evaluate('delete document.visibilityState');
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
      expect(await page.getByText(/^secret of/).count()).toBe(0);

      const tag = page.getByLabel('Name of the tag');
      await page.getByRole('button', { name: 'Add a tag', exact: true }).click();
      await tag.fill('owner');
      await visit('one');
      expect(await tag.count()).toBe(0);

      const interrupted = page.getByRole('link', { name: /^Interrupted/ }).first();
      const decision = page.getByLabel('Decision about half');
      await interrupted.click();
      await decision.waitFor();
      await visit('two');
      await interrupted.click();
      await decision.selectOption('import');
      page.once('dialog', (leave) => void leave.accept());
      await page.evaluate('history.go(-2)');
      await heading('one').waitFor();
      await decision.waitFor();
      expect(await decision.inputValue()).toBe('keep');
    },
    scenarioTimeoutMs,
  );

  test(
    'a read that the audit log records is not repeated when the page is refreshed',
    async () => {
      for (const name of ['left', 'right']) await makeStack(name);
      const reads: string[] = [];
      page.on('request', (request) => {
        for (const name of ['versions.text', 'versions.diffStacks']) if (request.url().includes(name)) reads.push(name);
      });
      const path = `${server.url}/dev-org/shop/left?tab=versions`;
      await page.goto(`${path}&show=state`);
      await page.getByRole('button', { name: 'Text', exact: true }).click();
      await page.getByRole('region', { name: 'State of version 1 as text' }).waitFor();
      await page.getByRole('button', { name: 'Pin', exact: true }).click();
      await page.getByRole('button', { name: 'Unpin', exact: true }).waitFor();
      expect(reads).toEqual(['versions.text']);
      await page.goto(`${path}&show=stacks&other=dev-org/shop/right&secrets=1`);
      await page.getByLabel('Show which secrets differ').and(page.locator(':checked')).waitFor();
      await page.getByRole('button', { name: 'Freeze', exact: true }).click();
      await confirm('Freeze');
      await page.getByText('Frozen until thawed').waitFor();
      await comeBack();
      await page.getByRole('button', { name: 'Thaw', exact: true }).click();
      await confirm('Thaw');
      expect(reads).toEqual(['versions.text', 'versions.diffStacks']);
    },
    scenarioTimeoutMs,
  );

  test(
    'what is shown only once stays when the session ends, and a dialog that cancels an update says so',
    async () => {
      await open('members');
      await page.getByRole('link', { name: 'Tokens', exact: true }).click();
      await page.getByRole('button', { name: 'Create a token' }).click();
      await dialog().getByLabel('Name').fill('robot');
      await button('Create the token').click();
      await dialog().getByText('It is shown only once').waitFor();
      const token = await dialog().locator('pre').innerText();
      // Nor does it go by a key of the browser, or of the page.
      const asked = page.waitForEvent('dialog');
      await Promise.all([page.evaluate('history.back()'), asked.then((leave) => leave.dismiss())]);
      expect((await asked).message()).toContain('shown only once');
      await page.keyboard.press('Control+k');
      await page.waitForURL(/tokens$/);
      expect(await page.getByRole('combobox', { name: 'Stack, page or command' }).count()).toBe(0);
      await endSession();
      expect(await dialog().locator('pre').innerText()).toBe(token);
      expect(await findFlaws(page)).toEqual([]);
      await signInAgain();
      expect(await dialog().locator('pre').innerText()).toBe(token);
      await confirm('I have stored it');

      await page.goto(`${server.url}/dev-org/~/webhooks`);
      await page.getByRole('button', { name: 'Create a feed', exact: true }).click();
      const address = await dialog().locator('pre').innerText();
      await endSession();
      expect(await dialog().locator('pre').innerText()).toBe(address);
      await signInAgain();
      await confirm('Done');

      await makeStack('stopped');
      const { updateID } = await call('POST', 'stacks/dev-org/shop/stopped/update', {});
      await page.goto(`${server.url}/dev-org/shop/stopped/previews/${updateID}`);
      await page.getByRole('button', { name: 'Cancel', exact: true }).click();
      await endSession();
      await signInAgain();
      await confirm('Cancel the update');
      await page.getByText('Cancelled').first().waitFor();
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
