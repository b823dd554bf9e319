import type { SectionLink } from '../platform/app/section-layout.tsx';
import { pageTexts } from '../platform/texts.tsx';

/** Pages are in the order of their links. */
export const operatorPages: readonly SectionLink[] = [
  { name: pageTexts.health, link: { to: '/~/operator/health' } },
  { name: pageTexts.queues, link: { to: '/~/operator/queues' } },
  { name: pageTexts.locks, link: { to: '/~/operator/locks' } },
  { name: pageTexts.storage, link: { to: '/~/operator/storage' } },
  { name: pageTexts.backups, link: { to: '/~/operator/backups' } },
  { name: pageTexts.tasks, link: { to: '/~/operator/tasks' } },
  { name: pageTexts.audit, link: { to: '/~/operator/audit' } },
];
