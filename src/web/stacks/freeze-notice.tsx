import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Snowflake } from 'lucide-react';
import { useState } from 'react';
import { useMayManage } from '../platform/app/organization-pages.ts';
import { usePageAction } from '../platform/app/page-actions.ts';
import type { StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Button, buttonClass } from '../platform/ui/button.tsx';
import { Notice } from '../platform/ui/notice.tsx';
import { Time } from '../platform/ui/time.tsx';
import { RuleDialog } from '../updates/rules/rule-dialog.tsx';
import { emptyDraft } from '../updates/rules/rule-draft.ts';
import { RemoveDialog } from '../updates/rules/rules-page.tsx';
import { freezeTexts } from './stack/texts.tsx';

/** Why the stack is frozen, and until when; for admins, also the rule and the button that removes it. */
export function FreezeNotice({
  details: { frozen },
  stack,
}: {
  readonly stack: StackRef;
  readonly details: StackDetails;
}) {
  const { organization } = stack;
  const mayManage = useMayManage(organization);
  /** The rule to remove. Meanwhile, another one may freeze the stack. */
  const [asked, setAsked] = useState<string | null>(null);
  const ruleId = frozen?.ruleId ?? '';
  const rule = useQuery(
    trpc.rules.get.queryOptions({ organization, ruleId: asked ?? '' }, { enabled: asked !== null }),
  );
  const mayThaw = mayManage && frozen?.isOfStackAlone === true;
  const thaw = (): void => {
    setAsked(ruleId);
    if (asked === ruleId && rule.error) void rule.refetch();
  };
  usePageAction(freezeTexts.thawStack, mayThaw ? thaw : null);
  return (
    <>
      {frozen === null ? null : (
        <Notice
          tone="neutral"
          icon={<Snowflake size={17} />}
          title={frozen.until === null ? freezeTexts.frozen : freezeTexts.frozenUntil(<Time at={frozen.until} />)}
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
                  <Button size="small" onClick={thaw}>
                    {freezeTexts.thaw}
                  </Button>
                ) : null}
              </>
            ) : undefined
          }
        >
          {frozen.note === '' ? null : <p>{frozen.note}</p>}
          {frozen.isOfStackAlone ? null : <p>{freezeTexts.byRule(frozen.scope)}</p>}
          {asked === ruleId && rule.error ? <p role="alert">{rule.error.message}</p> : null}
        </Notice>
      )}
      {asked !== null && rule.data ? (
        <RemoveDialog organization={organization} rule={rule.data} onClose={() => setAsked(null)} />
      ) : null}
    </>
  );
}

/** For admins, while no rule of its own freezes the stack. An open dialog stays if the stack is frozen meanwhile. */
export function FreezeButton({
  details: { frozen },
  stack,
}: {
  readonly stack: StackRef;
  readonly details: StackDetails;
}) {
  const mayManage = useMayManage(stack.organization);
  const [isAsked, setIsAsked] = useState(false);
  const mayFreeze = mayManage && frozen?.isOfStackAlone !== true;
  usePageAction(freezeTexts.freezeStack, mayFreeze ? () => setIsAsked(true) : null);
  return (
    <>
      {mayFreeze ? (
        <Button size="small" onClick={() => setIsAsked(true)}>
          <Snowflake size={14} aria-hidden="true" />
          {freezeTexts.freeze}
        </Button>
      ) : null}
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
