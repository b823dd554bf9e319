import { csvLine } from '../platform/csv/csv-line.ts';
import { type AuditAction, auditActions } from './audit-actions.ts';
import type { ListedEventRow } from './audit-list-repository.ts';

export const auditFormats = ['csv', 'cef', 'jsonl'] as const;
export type AuditFormat = (typeof auditFormats)[number];

export function describeEvent({
  action,
  object,
  outcome,
}: Pick<ListedEventRow, 'action' | 'object' | 'outcome'>): string {
  const done = auditActions[action as AuditAction] ?? action;
  return `${outcome === 'refused' ? 'Refused: ' : ''}${done}${object === '' ? '' : `: ${object}`}`;
}

/** Distinguishes operators and the server from users. */
export function actorName({ actor, login }: Pick<ListedEventRow, 'actor' | 'login'>): string {
  if (actor === 'user') return login;
  return actor === 'operator' ? `operator:${login}` : 'server:';
}

const columns: readonly (readonly [string, (event: ListedEventRow) => string])[] = [
  ['number', ({ number }) => String(number)],
  ['timestamp', ({ occurredAt }) => occurredAt.toISOString()],
  ['event', ({ action }) => action],
  ['outcome', ({ outcome }) => outcome],
  ['description', describeEvent],
  ['user', actorName],
  ['sourceIP', ({ address }) => address],
  ['tokenID', ({ tokenId }) => tokenId ?? ''],
  ['tokenName', ({ tokenName }) => tokenName],
  ['signIn', ({ signIn }) => signIn],
  ['role', ({ role }) => role],
  ['grantedBy', ({ grantedBy }) => grantedBy],
  ['object', ({ object }) => object],
  ['updateID', ({ updateId }) => updateId ?? ''],
  ['requestID', ({ requestId }) => requestId],
  ['userAgent', ({ userAgent }) => userAgent],
  ['ciRun', ({ ciRun }) => ciRun],
  ['details', ({ details }) => details],
];

/** Empty if the format has no first line. */
export function headerLine(format: AuditFormat): string {
  return format === 'csv' ? `${columns.map(([name]) => name).join(',')}\r\n` : '';
}

export const contentTypes: Readonly<Record<AuditFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  cef: 'text/plain; charset=utf-8',
  jsonl: 'application/x-ndjson',
};

/** A complete file; empty without events. */
export function batchText(format: AuditFormat, events: readonly ListedEventRow[], version: string): string {
  if (events.length === 0) return '';
  return [headerLine(format), ...events.map((event) => eventLine(format, event, version))].join('');
}

/** Includes the end of the line. */
export function eventLine(format: AuditFormat, event: ListedEventRow, version: string): string {
  if (format === 'csv') return csvLine(columns.map(([, read]) => read(event)));
  if (format === 'cef') return `${cefOf(event, version)}\n`;
  const values = Object.fromEntries(columns.map(([name, read]) => [name, read(event)]));
  const ciRun = event.ciRun === '' ? {} : JSON.parse(event.ciRun);
  return `${JSON.stringify({ ...values, number: event.number, ciRun, details: JSON.parse(event.details) })}\n`;
}

function cefOf(event: ListedEventRow, version: string): string {
  const head = ['CEF:0', 'Holdfast', 'Holdfast', version, event.action, describeEvent(event)];
  const severity = event.outcome === 'refused' ? '6' : '3';
  const extension: [string, string][] = [
    ['rt', String(event.occurredAt.getTime())],
    ['externalId', String(event.number)],
    ['outcome', event.outcome],
    ['suser', actorName(event)],
    ['spriv', event.role],
    ['src', event.address],
    ['requestClientApplication', event.userAgent],
    ['cs1Label', 'object'],
    ['cs1', event.object],
    ['cs2Label', 'requestID'],
    ['cs2', event.requestId],
    ['cs3Label', 'tokenID'],
    ['cs3', event.tokenId ?? ''],
    ['cs4Label', 'updateID'],
    ['cs4', event.updateId ?? ''],
    ['cs5Label', 'ciRun'],
    ['cs5', event.ciRun],
    ['cs6Label', 'details'],
    ['cs6', event.details],
  ];
  const values = extension.filter(([, value]) => value !== '').map(([name, value]) => `${name}=${cefValue(value)}`);
  return `${[...head.map(cefHeader), severity].join('|')}|${values.join(' ')}`;
}

const cefHeader = (text: string): string => text.replaceAll(/[\\|]/g, '\\$&').replaceAll(/[\r\n]+/g, ' ');
const cefValue = (text: string): string =>
  text.replaceAll(/[\\=]/g, '\\$&').replaceAll('\r', '\\r').replaceAll('\n', '\\n');
