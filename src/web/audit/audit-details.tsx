import type { AuditItem } from '../platform/app/procedure-types.ts';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { exactTime } from '../platform/ui/time-display.ts';
import styles from './audit-details.module.css';
import { signInLabels } from './sign-in-labels.ts';
import { auditDetailsTexts } from './texts.ts';

export function AuditDetails({ event }: { readonly event: AuditItem }) {
  const facts: readonly (readonly [string, string | null])[] = [
    [auditDetailsTexts.time, exactTime(new Date(event.at))],
    [auditDetailsTexts.action, event.action],
    [auditDetailsTexts.by, signInLabels[event.signIn] ?? event.signIn],
    [auditDetailsTexts.token, event.tokenName],
    [auditDetailsTexts.role, event.role],
    [auditDetailsTexts.permittedBy, event.grantedBy],
    [auditDetailsTexts.address, event.address],
    [auditDetailsTexts.program, event.userAgent],
    [auditDetailsTexts.update, event.updateId],
    [auditDetailsTexts.request, event.requestId],
    [auditDetailsTexts.event, String(event.number)],
  ];
  const details = Object.keys(event.details).length === 0 ? null : event.details;
  return (
    <div className={styles['details']}>
      <FactList>
        {facts.map(([name, value]) =>
          value === null || value === '' ? null : (
            <FactRow key={name} name={name}>
              {value}
            </FactRow>
          ),
        )}
      </FactList>
      {details === null && event.ciRun === null ? null : (
        <div className={styles['data']}>
          {details === null ? null : <pre className={styles['json']}>{JSON.stringify(details, null, 2)}</pre>}
          {event.ciRun === null ? null : (
            <pre className={styles['json']}>{JSON.stringify({ ciRun: event.ciRun }, null, 2)}</pre>
          )}
        </div>
      )}
    </div>
  );
}
