import type { ReactNode } from 'react';

export const deliveryTableTexts = {
  event: 'Event',
  sourceOf: (isManual: boolean, stack: string | null, project: string | null) =>
    `${isManual ? 'manual' : ''} ${stack === null ? '' : `of ${project}/${stack}`}`,
  result: 'Result',
  duration: 'Duration',
  milliseconds: (durationMs: number) => `${durationMs} ms`,
  sent: 'Sent',
  actions: 'Actions',
  showOrHide: (isShown: boolean, event: string) => `${isShown ? 'Hide' : 'Show'} the delivery of ${event}`,
  hide: 'Hide',
  show: 'Show',
  sendEventAgain: (event: string) => `Send again: ${event}`,
  sendAgain: 'Send again',
  deliveries: 'Deliveries',
  linkedDelivery: 'Linked delivery',
  noDeliveriesYet: 'No deliveries yet',
  sendAPing: 'Send a ping to check whether the receiver responds.',
  retryingAfter: (status: number) => `Retrying after ${status}`,
  nothing: 'empty',
  attempts: (attempts: number) => `${attempts} attempts`,
  request: 'Request',
  noResponse: 'No response',
  response: (responseStatus: number) => `Response ${responseStatus}`,
  asText: (title: string) => `${title}, as text`,
} as const;

export const webhookDialogTexts = {
  addAWebhook: 'Add a webhook',
  editWebhook: (displayName: string) => `Edit ${displayName}`,
  addTheWebhook: 'Add the webhook',
  save: 'Save',
  name: 'Name',
  url: 'URL',
  urlExample: 'https://',
  tokenHint: 'An API token of the code host.',
  format: 'Format',
  codeHostToken: 'Code host token',
  signingSecret: 'Signing secret',
  secretIsSet:
    'The secret is set and never shown. Leave empty to keep it. A different server needs a new one. A commit status needs it again for any other URL or format.',
  neverShownAgain: 'Never shown again.',
  removeTheSecret: 'Remove the secret',
  active: 'Active',
  events: 'Events',
  allEvents: 'all events',
  someEvents: 'some events',
} as const;

export const webhookListTexts = {
  name: 'Name',
  url: 'URL',
  format: 'Format',
  events: 'Events',
  state: 'State',
  webhooks: 'Webhooks',
  noWebhooksYet: 'No webhooks yet',
  emptyHint: 'Send events to Slack, Microsoft Teams, commit statuses, or any server that accepts JSON.',
  addAWebhook: 'Add a webhook',
  active: 'Active',
  paused: 'Paused',
} as const;

export const webhookTexts = {
  waitingForResponse: 'Waiting for the response…',
  sendAPing: 'Send a ping',
  edit: 'Edit',
  remove: 'Remove',
  state: 'State',
  format: 'Format',
  events: 'Events',
  secret: 'Secret',
  setNeverShown: 'set, never shown',
  notSigned: 'none: requests are not signed',
  deliveries: 'Deliveries',
  lead: 'The newest first. Failed deliveries are retried for a day.',
  removeQuestion: (displayName: string) => `Remove ${displayName}?`,
  removalDescription: (url: ReactNode) => <>No more events are sent to {url}, and its deliveries are deleted.</>,
  keepIt: 'Keep it',
} as const;

export const webhooksTexts = {
  title: 'Webhooks',
  lead: 'Webhooks notify other systems about updates, drift, freezes and approvals of all stacks. Webhooks of a single stack are on its page.',
  feeds: 'Feeds',
  feedsLead:
    'A feed lists the last updates of all stacks for a feed reader (Atom). A badge or feed of a single stack is on its page.',
} as const;
