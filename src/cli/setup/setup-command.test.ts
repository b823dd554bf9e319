import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../shared/platform/config/config.ts';
import { nextSteps, withFullPaths } from './setup-command.ts';

const service = { file: '/etc/holdfast/holdfast.env', isService: true };
const answers = { admin: null, organization: 'acme' };

test('the next steps of a service can be pasted together, although its first start takes a while', () => {
  const own = parseConfig({ HOLDFAST_DATA_DIR: '/var/lib/holdfast' });
  expect(nextSteps(own, answers, service)).toEqual([
    'sudo systemctl enable --now holdfast',
    'until sudo test -f /var/lib/holdfast/first-token || ! systemctl is-active --quiet holdfast; do sleep 1; done',
    'PULUMI_ACCESS_TOKEN="$(sudo cat /var/lib/holdfast/first-token)" pulumi login http://127.0.0.1:9090',
  ]);
  const elsewhere = parseConfig({
    HOLDFAST_DATA_DIR: '/var/lib/holdfast',
    HOLDFAST_DATABASE_URL: 'postgres://holdfast@db.example/holdfast',
  });
  expect(nextSteps(elsewhere, answers, service).slice(0, 3)).toEqual([
    'sudo systemctl enable --now holdfast',
    'sudo holdfast migrate',
    'sudo holdfast admin create-organization acme',
  ]);
});

test('the next steps wait for no token once there is a database, whose first admin may have deleted it', () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-setup-'));
  try {
    const config = parseConfig({ HOLDFAST_DATA_DIR: dataDir });
    mkdirSync(path.join(dataDir, 'postgres'));
    const start = 'sudo systemctl enable --now holdfast';
    // After what lets the unit write there.
    const steps = () => nextSteps(config, answers, service).slice(3);
    expect(steps()).toEqual([start]);
    writeFileSync(path.join(dataDir, 'first-token'), 'token');
    expect(steps()).toEqual([start, expect.stringContaining('pulumi login')]);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test('the next steps let the service write to a data directory elsewhere', () => {
  const config = parseConfig({ HOLDFAST_DATA_DIR: '/srv/holdfast', HOLDFAST_DATABASE_URL: 'postgres://h/d' });
  const steps = nextSteps(config, answers, service);
  expect(steps.slice(0, 4)).toEqual([
    'sudo mkdir -p /etc/systemd/system/holdfast.service.d',
    "printf '%s\\n' '[Service]' 'ReadWritePaths=\"/srv/holdfast\"' | sudo tee /etc/systemd/system/holdfast.service.d/data.conf",
    'sudo systemctl daemon-reload',
    'sudo systemctl enable --now holdfast',
  ]);
  expect(nextSteps(config, answers, { ...service, isService: false })[0]).toMatch(/server --migrate$/);
});

test('the next steps name a folder with spaces, quotes and percent signs as it is', () => {
  const dataDir = `/srv/ann's 100% "x"`;
  const steps = nextSteps(parseConfig({ HOLDFAST_DATA_DIR: dataDir }), answers, service);
  const [write] = (steps[1] as string).split(' | sudo tee ');
  expect(execFileSync('sh', ['-c', write as string], { encoding: 'utf8' })).toBe(
    `[Service]\nReadWritePaths="/srv/ann's 100%% \\"x\\""\n`,
  );
  const echoed = steps.at(-1)?.replace(/^PULUMI_ACCESS_TOKEN="\$\(sudo cat(.*)\)" pulumi.*$/, 'printf %s $1');
  expect(execFileSync('sh', ['-c', echoed as string], { encoding: 'utf8' })).toBe(`${dataDir}/first-token`);
});

test('paths in the file are those of the service', () => {
  const settings = { HOLDFAST_BOOTSTRAP: 'bootstrap.yaml', HOLDFAST_CA_FILE: '/etc/ca.pem', HOLDFAST_TLS_KEY_FILE: '' };
  expect(withFullPaths(settings, '/var/lib/holdfast')).toEqual({
    ...settings,
    HOLDFAST_BOOTSTRAP: '/var/lib/holdfast/bootstrap.yaml',
  });
});
