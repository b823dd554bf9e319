import type { Delivery, Webhook } from '../platform/app/procedure-types.ts';
import { webhookLabelTexts } from './labels/texts.ts';

const { states } = webhookLabelTexts;

export const formats = Object.entries(webhookLabelTexts.formats) as readonly (readonly [
  keyof typeof webhookLabelTexts.formats,
  string,
])[];

export function nameOfFormat(format: string): string {
  return formats.find(([each]) => each === format)?.[1] ?? format;
}

export const groupNames: Readonly<Record<string, string>> = webhookLabelTexts.groups;

export function nameOfGroup(group: string): string {
  return groupNames[group] ?? group;
}

/** The label of an event such as `update_succeeded`. */
export function nameOfEvent(event: string): string {
  return event.replaceAll('_', ' ');
}

export function describeEvents({ events, groups }: Pick<Webhook, 'events' | 'groups'>): string {
  if (events.length === 0 && groups.length === 0) return webhookLabelTexts.allEvents;
  return [...groups.map(nameOfGroup), ...events.map(nameOfEvent)].join(', ');
}

export const deliveryStates: Readonly<
  Record<Delivery['state'], { readonly word: string; readonly tone: 'success' | 'failure' | 'running' | 'neutral' }>
> = {
  delivered: { word: states.delivered, tone: 'success' },
  failed: { word: states.failed, tone: 'failure' },
  waiting: { word: states.waiting, tone: 'running' },
  'left-out': { word: states.skipped, tone: 'neutral' },
};
