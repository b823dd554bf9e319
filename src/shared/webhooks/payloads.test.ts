import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../testkit/any-code-point.ts';
import { factsOf } from './event-facts.ts';
import { payloadOf } from './payloads.ts';
import type { EventSource } from './webhook-event-repository.ts';
import { describeEvent, isEventGroup, isEventName, webhookEvents } from './webhook-events.ts';

const source = (more: Partial<EventSource> = {}): EventSource => ({
  ...{
    facts: null,
    event: 'update_failed',
    occurredAt: new Date(0),
    details: '{}',
    organization: 'acme',
    project: 'site',
    stack: 'prod',
  },
  ...{ updateId: 'u', kind: 'update', dryRun: false, status: 'failed', endReason: null, stackVersion: 3, message: 'm' },
  ...{ resourceChanges: '{"create":1}', environment: '{}', startedAt: new Date(0), endedAt: new Date(1), login: 'ada' },
  ...more,
});
const payload = (format: string, more: Partial<EventSource> = {}) =>
  JSON.parse(payloadOf(format, 'id', factsOf(source(more))));

test('client input does not become a link, a mention or an address', () => {
  const environment = JSON.stringify({ 'ci.build.url': 'javascript:alert(1)' });
  const sent = { login: '<!channel>', stack: '[click](https://evil.example)', environment };
  expect(payload('slack', sent).text).toContain('&lt;!channel&gt;');
  expect(payload('slack', sent).text).not.toContain('javascript');
  const card = JSON.stringify(payload('ms_teams', sent));
  expect(card).not.toContain('[click](');
  expect(card).not.toContain('javascript');
});

test('any client input yields a payload in each format', () => {
  const text = fc.option(fc.oneof(fc.string({ unit: anyCodePoint }), fc.json()), { nil: null });
  fc.assert(
    fc.property(text, text, fc.string({ unit: anyCodePoint }), (environment, resourceChanges, message) => {
      for (const format of ['raw', 'slack', 'ms_teams'])
        expect(payload(format, { environment, resourceChanges, message })).toBeInstanceOf(Object);
    }),
  );
});

test('a card for Teams does not end in half a character', () => {
  const card = JSON.stringify(payload('ms_teams', { message: `${'a'.repeat(199)}😀` }));
  expect(card).toContain('aaa\ufffd"');
});

test('an update that was cancelled says so', () => {
  expect(payload('raw', { status: 'cancelled', endReason: 'cancelled' })).toMatchObject({
    type: 'update_failed',
    result: 'cancelled',
  });
  expect(payload('slack', { endReason: 'cancelled' }).text).toContain('update was cancelled');
});

test('what is unusual about an update is in each format, and not in the event of its beginning', () => {
  const unusual = ['took 90 s, usually 3 to 5 s', 'deletes 14, usually 0'];
  const sent = (format: string, more: Partial<EventSource> = {}) =>
    JSON.parse(payloadOf(format, 'id', factsOf(source(more), unusual)));
  expect(sent('raw').unusual).toEqual(unusual);
  const text = 'update failed (1 create); unusual: took 90 s, usually 3 to 5 s; unusual: deletes 14, usually 0';
  expect(sent('slack').text).toContain(text);
  expect(JSON.stringify(sent('ms_teams'))).toContain('unusual: deletes 14, usually 0');
  expect(sent('raw', { event: 'update_started' }).unusual).toEqual([]);
});

test('drift is reported with its findings, not with the changes of the update', () => {
  const drift = { event: 'drift_detected', details: '{"changes":{"delete":2}}' };
  expect(payload('slack', drift).text).toContain('has drifted (2 delete)');
});

test('an event of a later release is described by its name', () => {
  expect(describeEvent('stack_frozen')).toEqual({ group: 'holdfast', text: 'stack frozen' });
  expect(payload('slack', { event: 'stack_frozen', updateId: null }).text).toContain('stack frozen');
});

test('all events and groups can be selected, including the ones that the CLI offers', () => {
  for (const [name, { group }] of Object.entries(webhookEvents))
    expect([isEventName(name), isEventGroup(group)]).toEqual([true, true]);
  // orgGroupFilters in pkg/cmd/pulumi/org/org_webhook_new.go
  const offered = [
    ...[
      'import_failed',
      'deployment_queued',
      'deployment_file_ingestion_failed',
      'drift_detection_succeeded',
      'drift_remediation_failed',
    ],
    ...[
      'policy_violation_mandatory',
      'environment_created',
      'environment_revision_tag_updated',
      'imported_environment_changed',
    ],
    ...['change_request_created', 'change_request_unapproved'],
  ];
  for (const name of offered) expect({ name, known: isEventName(name) }).toEqual({ name, known: true });
  for (const name of ['', 'toString', 'update_exploded', 'constructor']) expect(isEventName(name)).toBe(false);
});
