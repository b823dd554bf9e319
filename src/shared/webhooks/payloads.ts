import { type EventFacts, sentenceOf, subjectOf } from './event-facts.ts';
import { describeEvent } from './webhook-events.ts';

/** The same for each attempt. */
export function payloadOf(format: string, id: string, facts: EventFacts): string {
  return JSON.stringify(format === 'slack' ? slack(facts) : format === 'ms_teams' ? teams(facts) : raw(id, facts));
}

/** The members of Pulumi Cloud (`user` to `resourceChanges`) and our own. */
function raw(id: string, facts: EventFacts): object {
  const { details, event, login, occurredAt, organization, project, stack, update } = facts;
  const person = (name: string) => ({ name, githubLogin: name, avatarUrl: '' });
  return {
    id,
    type: event,
    timestamp: occurredAt,
    ...(login === null ? {} : { user: person(login) }),
    organization: person(organization),
    ...(project === null ? {} : { projectName: project }),
    ...(stack === null ? {} : { stackName: stack }),
    ...(update === null
      ? {}
      : {
          updateUrl: update.origin.ciUrl,
          kind: update.kind,
          ...(update.result === null ? {} : { result: update.result }),
          resourceChanges: update.resourceChanges,
          isPreview: update.isPreview,
          updateId: update.id,
          ...(update.version === null ? {} : { version: update.version }),
          message: update.message,
          ...(update.startedAt === null ? {} : { startedAt: update.startedAt }),
          ...(update.endedAt === null ? {} : { endedAt: update.endedAt }),
          origin: update.origin,
          unusual: update.unusual,
        }),
    details,
  };
}

function slack(facts: EventFacts): object {
  const { login, update } = facts;
  const link = update?.origin.ciUrl ? ` <${escaped(update.origin.ciUrl).replaceAll('|', '%7C')}|CI run>` : '';
  const by = login === null ? '' : ` by ${escaped(login)}`;
  return { text: `${mark(facts)}*${escaped(subjectOf(facts))}*: ${escaped(sentenceOf(facts))}${by}${link}` };
}

/** Links and mentions begin with these characters in Slack. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** An adaptive card, as accepted by workflows of Teams. */
function teams(facts: EventFacts): object {
  const { login, update } = facts;
  const rows = [
    ...(login === null ? [] : [{ title: 'By', value: plain(login) }]),
    ...(update?.message ? [{ title: 'Message', value: plain(update.message.slice(0, 200).toWellFormed()) }] : []),
    ...(update?.origin.commit ? [{ title: 'Commit', value: plain(update.origin.commit) }] : []),
  ];
  const card = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [
      { type: 'TextBlock', weight: 'bolder', wrap: true, text: plain(subjectOf(facts)) },
      { type: 'TextBlock', wrap: true, text: plain(`${mark(facts)}${sentenceOf(facts)}`) },
      ...(rows.length > 0 ? [{ type: 'FactSet', facts: rows }] : []),
    ],
    ...(update?.origin.ciUrl
      ? { actions: [{ type: 'Action.OpenUrl', title: 'CI run', url: update.origin.ciUrl }] }
      : {}),
  };
  return {
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content: card }],
  };
}

/** Text blocks understand Markdown: a name must not become a link. */
function plain(text: string): string {
  return text.replace(/[[\]()*_`\\]/g, (found) => `\\${found}`);
}

const warnings: ReadonlySet<string> = new Set([
  'drift_detected',
  'update_waiting',
  'update_stopped',
  'outputs_removed',
  'approval_asked',
]);

function mark({ event, update }: EventFacts): string {
  if (warnings.has(event)) return '⚠ ';
  if (!update || update.result === null) return '';
  return update.result === 'succeeded' ? '✔ ' : '✖ ';
}

export function eventHeaders(id: string, seconds: number, event: string): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'pulumi-webhook-id': id,
    'pulumi-webhook-kind': describeEvent(event).kind ?? event,
  };
}
