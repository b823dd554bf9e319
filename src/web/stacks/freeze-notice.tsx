import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Snowflake } from 'lucide-react';
import { useState } from 'react';
import type { StackDetails, StackRef } from '../platform/app/contract.ts';
import { useMayManage } from '../platform/app/organization-pages.ts';
import { usePageAction } from '../platform/app/page-actions.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Button, buttonClass } from '../platform/ui/button.tsx';
import { Notice } from '../platform/ui/notification.tsx';
import { Time } from '../platform/ui/time.tsx';
import { RuleDialog } from '../updates/rules/rule-dialog.tsx';
import { emptyDraft } from '../updates/rules/rule-draft.ts';
import { RemoveDialog } from '../updates/rules/rules-page.tsx';
import { freezeTexts } from './stack/texts.tsx';

/** Why the stack is frozen, and until when; for admins, with the rule and the button that removes it. */
export function FreezeNotice({
  details: { frozen },
  stack,
}: {
  readonly stack: StackRef;
  readonly details: StackDetails;
}) {
  const { organization } = stack;
  const mayManage = useMayManage(organization);
  const [isAsked, setIsAsked] = useState(false);
  const ruleId = frozen?.ruleId ?? '';
  const rule = useQuery(trpc.rules.get.queryOptions({ organization, ruleId }, { enabled: isAsked }));
  const mayThaw = mayManage && frozen?.isOfStackAlone === true;
  usePageAction(freezeTexts.thawStack, mayThaw ? () => setIsAsked(true) : null);
  if (frozen === null) return null;
  const { isOfStackAlone, note, scope, until } = frozen;
  return (
    <Notice
      tone="neutral"
      icon={<Snowflake size={17} />}
      title={until === null ? freezeTexts.frozen : freezeTexts.frozenUntil(<Time at={until} />)}
      action={
        mayManage ? (
          <>
            <Link
              to="/$organization/~/rules"
              params={{ organization }}
              search={{ rule: ruleId }}
              className={buttonClass({ size: 'small' })}
            >
              {freezeTexts.openRule}
            </Link>
            {mayThaw ? (
              <Button size="small" onClick={() => setIsAsked(true)}>
                {freezeTexts.thaw}
              </Button>
            ) : null}
          </>
        ) : undefined
      }
    >
      {note === '' ? null : <p>{note}</p>}
      {isOfStackAlone ? null : <p>{freezeTexts.byRule(scope)}</p>}
      {isAsked && rule.error ? <p role="alert">{rule.error.message}</p> : null}
      {isAsked && rule.data ? (
        <RemoveDialog organization={organization} rule={rule.data} onClose={() => setIsAsked(false)} />
      ) : null}
    </Notice>
  );
}

/** For admins, while the stack is not frozen by a rule of its own. */
export function FreezeButton({
  details: { frozen },
  stack,
}: {
  readonly stack: StackRef;
  readonly details: StackDetails;
}) {
  const mayManage = useMayManage(stack.organization);
  const [isAsked, setIsAsked] = useState(false);
  const mayFreeze = mayManage && frozen === null;
  usePageAction(freezeTexts.freezeStack, mayFreeze ? () => setIsAsked(true) : null);
  if (!mayFreeze) return null;
  return (
    <>
      <Button size="small" onClick={() => setIsAsked(true)}>
        <Snowflake size={14} aria-hidden="true" />
        {freezeTexts.freeze}
      </Button>
      {isAsked ? (
        <RuleDialog
          organization={stack.organization}
          first={{ ...emptyDraft('freeze'), scope: 'stack', project: stack.project, stack: stack.stack }}
          kinds={['freeze']}
          stack={stack}
          onClose={() => setIsAsked(false)}
        />
      ) : null}
    </>
  );
}
