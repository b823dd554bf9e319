import { Menu as Base } from '@base-ui/react/menu';
import { Check } from 'lucide-react';
import type { ReactNode, RefObject } from 'react';
import styles from './menu.module.css';

/** The list of a menu, beside its button. */
export function MenuPopup({
  align,
  anchor,
  children,
  isOpen,
  onChange,
}: {
  readonly anchor: RefObject<HTMLElement | null>;
  readonly align: 'start' | 'end';
  readonly isOpen: boolean;
  readonly onChange: (isOpen: boolean) => void;
  readonly children: ReactNode;
}) {
  return (
    <Base.Root open={isOpen} onOpenChange={onChange}>
      <Base.Portal>
        <Base.Positioner className={styles['positioner']} anchor={anchor} align={align} sideOffset={6}>
          <Base.Popup className={styles['popup']} finalFocus={anchor}>
            {children}
          </Base.Popup>
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
  /** Whether this item is the chosen one of several, which has a mark. */
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

export function MenuSeparator() {
  return <Base.Separator className={styles['separator']} />;
}
