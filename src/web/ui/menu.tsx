import { Menu as Base } from '@base-ui/react/menu';
import { Check } from 'lucide-react';
import type { ReactElement, ReactNode } from 'react';
import styles from './menu.module.css';

/** A button that opens a list of actions. `trigger`: the button, such as `<Button>`. */
export function Menu({
  align = 'start',
  children,
  trigger,
}: {
  readonly trigger: ReactElement;
  readonly children: ReactNode;
  readonly align?: 'start' | 'end';
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner className={styles['positioner']} align={align} sideOffset={6}>
          <Base.Popup className={styles['popup']}>{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

export function MenuItem({
  children,
  icon,
  isChosen,
  onSelect,
}: {
  readonly children: ReactNode;
  readonly onSelect: () => void;
  readonly icon?: ReactNode;
  /** With a mark, where one of several is chosen. */
  readonly isChosen?: boolean;
}) {
  return (
    <Base.Item className={styles['item']} onClick={onSelect} aria-current={isChosen ? 'true' : undefined}>
      {icon}
      <span className={styles['text']}>{children}</span>
      {isChosen ? <Check size={15} aria-hidden="true" /> : null}
    </Base.Item>
  );
}

export function MenuLabel({ children }: { readonly children: ReactNode }) {
  return <div className={styles['label']}>{children}</div>;
}

export function MenuSeparator() {
  return <Base.Separator className={styles['separator']} />;
}
