"""LEXICON: the words that labels put before their values, per field and language; a table to be extended.

Phrases are separated by `|`; case, accents, spaces and punctuation do not matter, nor do the letters and digits
that OCR swaps (label_text.skeleton). A phrase belongs to one field only. `other` names what is none of our fields:
such a phrase ends the value before it and keeps its own from being taken for one.
"""

from __future__ import annotations

OTHER = "other"

LEXICON: dict[str, tuple[str, ...]] = {
    "expiry_date": (
        # en
        "exp|exp date|exp dt|exp on|expd|expiry|expiry date|expire date|expires|expires on|expires end|expiration"
        "|expiration date|date of expiry|best before|best before end|best before date|best before end of|best by"
        "|best by date|best if used by|best if used before|best when used by|best used by|best used before|best until"
        "|best consumed before|bb|bbe|bbd|bb exp|bb date|use by|use by date|use before|use before end|use before end of"
        "|use or freeze by|use until|use within date|sell by|sell by date|consume by|consume before"
        "|to be consumed before|enjoy by|enjoy before|good until|good through|good thru|valid until|valid thru"
        "|valid through|valid to|not to be used after|do not use after|shelf life until|shelf life ends|eat by|drink by"
        "|drink before"
        "|display until|discard after|discard by|freeze by|not after|must be used by|expiring|ubd|exdate|best bef",
        # de
        "mhd|mindestens haltbar bis|mindestens haltbar bis ende|mind haltbar bis|min haltbar bis|haltbar bis"
        "|haltbar bis ende|haltbarkeit bis|mindesthaltbarkeitsdatum|mindesthaltbarkeit|zu verbrauchen bis"
        "|verbrauchen bis|verbrauch bis|verbrauchsdatum|verbrauchen vor|verwendbar bis|verw bis|verwenden bis"
        "|verfall|verfallsdatum|verfalldatum|verfällt am|ablaufdatum|läuft ab am|gültig bis|aufbrauchen bis"
        "|zu verwenden bis|am besten vor|verbrauchen sie bis",
        # fr
        "à consommer de préférence avant|à consommer de préférence avant le|à consommer de préférence avant fin"
        "|consommer de préférence avant|consommer de préférence avant le|de préférence avant le|à consommer avant"
        "|à consommer avant le|à consommer avant fin|à consommer jusqu'au|consommer avant|consommer avant le"
        "|date de péremption|péremption|périme le|ddm|dlc|dluo|date limite de consommation|date limite d'utilisation"
        "|date de durabilité minimale|expire le|expire fin|date d'expiration|à utiliser avant|à utiliser avant le"
        "|utiliser avant|à utiliser de préférence avant|utiliser de préférence avant|valable jusqu'au|date limite"
        "|meilleur avant|à consommer|perem",
        # es
        "consumir preferentemente antes de|consumir preferentemente antes del|consumir preferentemente antes del fin de"
        "|consumir antes de|consumir antes del|consumir preferentemente|consúmase preferentemente antes de"
        "|consúmase antes de|fecha de caducidad|fecha caducidad|fecha cad|fec cad|f cad|caducidad|cad|caduca|caduca el"
        "|fecha de vencimiento|fecha vencimiento|fecha venc|f venc|vencimiento|vence|vence el|venc|vto|fecha vto"
        "|válido hasta|fecha de expiración|fecha de consumo preferente|consumo preferente|usar antes de|usar antes del"
        "|mejor antes de|utilizar antes de|expira|expira el",
        # it
        "da consumarsi preferibilmente entro|da consumarsi preferibilmente entro il"
        "|da consumarsi preferibilmente entro fine|da consumarsi entro|da consumarsi entro il|da consumare entro"
        "|da consumare entro il|consumare entro|consumare preferibilmente entro|preferibilmente entro"
        "|preferibilmente entro il|scadenza|data di scadenza|data scadenza|scad|scade|scade il|tmc"
        "|utilizzare entro|utilizzare entro il|valido fino al|data di durata minima",
        # nl, pt, and a word each from further neighbours
        "ten minste houdbaar tot|tenminste houdbaar tot|ten minste houdbaar tot einde|tht|houdbaar tot|te gebruiken tot"
        "|tgt|gebruiken voor|te gebruiken voor|uiterste gebruiksdatum|uiterste consumptiedatum|vervaldatum"
        "|uiterste verkoopdatum|houdbaarheidsdatum|minimaal houdbaar tot",
        "validade|data de validade|válido até|consumir de preferência antes de|consumir de preferência antes do fim de"
        "|consumir até|de preferência antes de|data de vencimento|usar até|melhor antes de|data limite de consumo"
        "|val|val até|prazo de validade",
        "najlepiej spożyć przed|należy spożyć do|data ważności|termin ważności|termin przydatności|bäst före|sista"
        " förbrukningsdag|utgångsdatum|bedst før|mindst holdbar til|sidste anvendelsesdato|best før|siste forbruksdag"
        "|parasta ennen|viimeinen käyttöpäivä|minimální trvanlivost do|spotřebujte do|son kullanma tarihi|skt|tett"
        "|годен до|срок годности|minőségét megőrzi|felhasználható|a se consuma înainte de",
        # zh, ja, ko
        "保质期至|保质期到|保质期|有效期至|有效期到|有效期|有效期限|失效日期|失效期|到期日|到期日期|截止日期|使用期限|使用期限至|限用日期|限期使用日期"
        "|此日期前最佳|最佳食用日期|最佳使用日期|最佳赏味期|保鲜期至|赏味期限|有效日期|有效日期至|賞味期限|消費期限|使用期限|保存期限|有效期限至|유통기한|소비기한"
        "|사용기한|까지",
        "install by|sterile exp|use or freeze before|use by freeze by|best eaten before|best eaten by"
        "|best enjoyed by|best enjoyed before|fresh until|sale by|sell before|do not sell after|expiry dt"
        "|expiry month|exp month|exp dte|expires by|expired date|good before|serve by|serve before|bb end"
        "|best before end date|best before use by|exp use by|use by exp|exp bb|best by use by|last use date"
        "|sterile until|sterility expiry|sterility exp date|valid up to|valid till|use till|usable until"
        "|to be used before|to be used by|must use by|bb ma",
        "verwendb bis|verbr bis|mind haltb bis|mindest haltbar bis|haltb bis|mindestens haltbar|mind haltbar"
        "|ungeöffnet haltbar bis|ungeöffnet mindestens haltbar bis|gekühlt mindestens haltbar bis"
        "|gekühlt haltbar bis|tiefgekühlt mindestens haltbar bis|spätestens zu verbrauchen bis|zu verzehren bis"
        "|verzehren bis|zu verbrauchen bis spätestens|steril bis|anwendbar bis|exp verw bis|bestens haltbar bis",
        "à cons avant|à cons avant le|à cons de préf avant|à cons de préf avant le|à cons de préf avant fin"
        "|cons de préf avant|cons de préf avant le|de préf avant le|à consommer de préf avant"
        "|à consommer de préf avant le|à consommer de préf avant fin|à utiliser de préf avant"
        "|à utiliser de préf avant le|à utiliser de préf avant fin|à utiliser de préférence avant le"
        "|à utiliser de préférence avant fin|date de pér|date pér|exp pér|fin de validité|date de validité"
        "|validité|valide jusqu'au|utilisable jusqu'au|à consommer de préférence jusqu'au|ne pas utiliser après"
        "|ne pas consommer après le|dluo ddm|dlc ddm|date d'exp|meilleur avant le|stérile jusqu'au",
        "fecha de cad|f caducidad|cons pref antes de|cons pref antes del|cons pref|consumir pref antes de"
        "|consumir pref antes del|consumir pref antes del fin de|consumo preferente antes de"
        "|consumo preferente antes del|consumir de preferencia antes del|consúmase antes del"
        "|consúmase preferentemente antes del|caduc|caduca en|exp venc|exp cad|cad exp|venc exp|fecha de venc"
        "|f vto|f de vto|fecha de vto|f exp|fecha exp|fecha de exp|fec exp|fec venc|vencim|vence en"
        "|no usar después de|no consumir después de|úsese antes de|mejor antes del|válido hasta el|expiración",
        "cons de pref antes de|cons de pref até|consumir de pref antes de|consumir de pref antes do fim de"
        "|consumir de preferência até|consumir antes do fim de|validade até|dt val|dt validade|data validade"
        "|data val|valid|venc em|não utilizar após|estéril até|data de expiração|melhor consumir até|válida até",
        "da cons pref entro|da cons pref entro il|da cons preferibilmente entro|da cons preferibilmente entro il"
        "|da consumarsi pref entro|da consumarsi pref entro il|da consumarsi pref entro fine"
        "|da consumare preferibilmente entro|da consumare preferibilmente entro il|cons pref entro"
        "|cons pref entro il|da consumarsi entro fine|consumarsi entro|data scad|dt scad|entro il|entro fine"
        "|da usare entro|usare entro|usare entro il|utilizzare preferibilmente entro|non usare dopo"
        "|sterile fino al|valido fino a",
        "min houdbaar tot|ten minste houdbaar|ten minste houdbaar t m|houdbaar t m|bij voorkeur te gebruiken voor"
        "|bij voorkeur gebruiken voor|tht datum|exp datum|uiterste verbruiksdatum|vervalt op"
        "|ongeopend houdbaar tot|te consumeren voor|niet te gebruiken na",
        "bäst före datum|bäst före utgången av|sista förbr dag|utg datum|används före|används senast|holdbar til"
        "|mindst holdbar til og med|bedst før dato|bedst før udgangen af|anvendes før|udløbsdato|best før dato"
        "|best før utgangen av|siste forbr dag|brukes før|utløpsdato|parasta ennen päivä|parasta ennen loppua"
        "|viim käyttöpäivä|käytettävä ennen|viimeinen käyttöpvm|geriausias iki|tinka vartoti iki|tinka iki"
        "|ieteicams līdz|derīgs līdz|izlietot līdz|parim enne|kõlblik kuni|kõlblik kuni lõpuni",
        "najlepiej spożyć przed końcem|spożyć do|zużyć do|należy zużyć do|termin ważn|data ważn|data przydatności"
        "|ważne do|ważny do|najlepiej zużyć przed|spotřebujte nejlépe do|datum spotřeby|min trvanlivost do"
        "|minimální trvanlivost|datum minimální trvanlivosti|minimálna trvanlivosť do|exspirace|použitelné do"
        "|použít do|minőségét megőrzi a hónap végéig|fogyasztható|lejárat|lejárati idő|lejárati dátum|felh"
        "|a se consuma de preferință înainte de|a se consuma până la|expiră la|data expirării|valabil până la"
        "|data exp|najbolje upotrijebiti do|upotrijebiti do|rok trajanja|rok valjanosti|rok uporabe|rok upotrebe"
        "|uporabno najmanj do|porabiti do|najbolje upotrebiti do|upotrebljivo do|son kul tarihi|son kullanma"
        "|son kull tar|son tüketim tarihi|tavsiye edilen tüketim tarihi|son kul tar",
        "годен до конца|срок годности до|употребить до|использовать до|хранить до|употребить до конца|вжити до"
        "|придатний до|термін придатності|термін придатності до|най добър до|срок на годност|годно до"
        "|използвай преди|употребити до|најбоље употребити до|ανάλωση κατά προτίμηση πριν από|ανάλωση έως"
        "|ανάλωση πριν από|ημερομηνία λήξης|ημερ λήξης|ημ λήξης|λήξη|λήγει|לשימוש עד|תאריך תפוגה"
        "|תאריך אחרון לשימוש|תאריך אחרון לשיווק|تاريخ الانتهاء|تاريخ انتهاء الصلاحية|تاريخ الصلاحية|يستهلك قبل"
        "|صالح لغاية|hạn sử dụng|hsd|hạn dùng|sử dụng tốt nhất trước ngày|baik digunakan sebelum|guna sebelum"
        "|tarikh luput|tanggal kedaluwarsa|kedaluwarsa|kadaluarsa",
        "食用期限|食用期至|保质日期|质保期至|保用期至|有效期截止|限用期|过期日期|使用期至|失效年月|最佳饮用日期|最佳食用期|赏味期|此日期前食用|此日期或之前食用|此日期或之前食用最佳|请于此日期前食用"
        "|此日期前使用|有効期限|使用推奨期限|品質保持期限|유효기간|유효기한|품질유지기한|วันหมดอายุ|หมดอายุ|ควรบริโภคก่อน|ควรบริโภคก่อนวันที่",
    ),
    "manufacture_date": (
        "mfg|mfg on|mfg date|mfg dt|mfgd|mfd|mfd on|mfd date|mfr date|mnf date|mnfg|man date|manf date|manuf date"
        "|manufd|manufactured|manufactured on|manufactured date|manufacturing date|manufacture date"
        "|date of manufacture|date of manufacturing|date mfg|date of mfg|date manufactured|dom|prod|prod on|prod date"
        "|prod dt|prd|prd date|production date|production|date of production|production on|produced|produced on"
        "|date produced|made on|made|packed|packed on|packed date|pack date|pack on|packing date|packaging date"
        "|packaged|packaged on|date of packing|date of packaging|date packed|pkd|pkd on|pkd date|pkg date|pkgd"
        "|bottled on|bottling date|baked on|baked|roasted on|roast date|brewed on|brew date|filled on|filling date"
        "|fill date|canned on|frozen on|date of freezing|built|built on|build date|date built|year of manufacture"
        "|manufacture|assembled|assembled on"
        "|assembly date|date of assembly|harvested on|harvest date|milled on|born on|date of construction"
        "|construction date|date made|date of make|fabrication date|created on",
        "hergestellt|hergestellt am|herstellung|herstellung am|herstellungsdatum|herstelldatum|herst datum|herst am"
        "|produktionsdatum|produktion|produktion am|produziert|produziert am|prod datum|verpackt am|verpackungsdatum"
        "|abgepackt am|abpackdatum|gepackt am|abfülldatum|abgefüllt am|gebacken am|geröstet am|röstdatum"
        "|fertigungsdatum|fertigung|gefertigt am|eingefroren am|gefroren am|baudatum|montiert am|erzeugt am",
        "fabriqué le|fabriquée le|date de fabrication|date fabrication|date fab|fabrication|fab|fab le|produit le"
        "|date de production|date production|conditionné le|date de conditionnement|emballé le|date d'emballage"
        "|date emballage|embouteillé le|préparé le|torréfié le|congelé le|date de congélation|assemblé le"
        "|date d'assemblage",
        "fecha de fabricación|fecha fabricación|fecha fab|fec fab|f fab|fabricación|fabricado el|fecha de elaboración"
        "|fecha elaboración|fecha elab|f elab|elaboración|elab|elaborado el|fecha de producción|fecha producción"
        "|producción|producido el|fecha de envasado|fecha envasado|envasado el|f env|fecha de empaque|fecha empaque"
        "|fecha de empacado|empacado el|envasado en fecha|fecha de manufactura|fecha de montaje|congelado el",
        "data di produzione|data produzione|produzione|prodotto il|data di fabbricazione|data fabbricazione"
        "|fabbricazione|fabbricato il|confezionato il|data di confezionamento|data confezionamento|imbottigliato il"
        "|congelato il|tostato il|assemblato il",
        "productiedatum|geproduceerd op|verpakt op|verpakkingsdatum|fabricagedatum|fabricage|gefabriceerd op"
        "|ingevroren op|gemaakt op|data de fabricação|data de fabrico|fabricado em|fabrico|data de produção"
        "|produzido em|embalado em|data de embalagem|envasado em|data fab|fabricação",
        "data produkcji|wyprodukowano|tillverkad|tillverkningsdatum|packdag|fremstillet|produktionsdato|valmistettu"
        "|datum výroby|üretim tarihi|дата изготовления|изготовлено|gyártás ideje",
        "生产日期|制造日期|出厂日期|包装日期|分装日期|灌装日期|生产年月|制造年月|加工日期|装配日期|製造日期|製造年月日|製造日|包裝日期|生產日期|제조일자|제조일|제조연월일|제조",
        "mfd dt|mfr dt|date of mfr|date mfd|manuf|manuf on|manuf dt|pkd dt|packed dt|pack dt|dt of mfg|dt of pkg"
        "|date of pkg|mfg month|month of manufacture|month and year of manufacture|month of packing"
        "|year of construction|year of production|year built|year made|yom|mnf|mnf dt|prdn date|prdn|catch date"
        "|date of catch|date caught|landed on|slaughtered|slaughter date|date of slaughter|kill date|killed on"
        "|lay date|laying date|date of laying|laid on|sterilised on|sterilized on|sterilisation date"
        "|sterilization date|date of sterilisation|date of sterilization|prepared on|cooked on|processed on"
        "|processing date|fresh packed on|packed fresh on|mfg prod|prod mfg|mfg and pkd|mfg pkd|pack date time"
        "|prod date time|date of production time|date compounded|compounded on|pkgd on|mfg on date"
        "|manufacturing dt",
        "herst|herst dat|hergest am|herstelldat|prod dat|produktionsdat|abfüllung|abfülldat|abgef am"
        "|verpackungsdat|verp am|schlachtdatum|geschlachtet am|fangdatum|gefangen am|legedatum|gelegt am"
        "|erntedatum|geerntet am|baujahr|herstelljahr|fertigungsjahr|sterilisiert am|gekocht am|zubereitet am"
        "|frisch verpackt am|einfrierdatum|tiefgefroren am|datum der herstellung|datum der verpackung"
        "|datum des einfrierens",
        "date de fab|date fabr|fabr|fabr le|fabriqué en date du|date d'abattage|abattu le|date de pêche|pêché le"
        "|date de ponte|pondu le|date de récolte|date d'embouteillage|conditionnement|cond le|date cond|emb le"
        "|année de fabrication|année de construction|stérilisé le|cuit le|mis en bouteille le|fab exp"
        "|date de mise en bouteille",
        "fecha de fab|fch fab|fecha de elab|elab el|f elaboración|f fabricación|f prod|fecha prod|fecha de prod"
        "|fabr el|f envasado|fecha de sacrificio|fecha de captura|fecha de congelación|fecha de puesta"
        "|fecha de cosecha|año de fabricación|fecha de esterilización|envasado|empacado|empaque|fecha de mfg"
        "|fab el",
        "fab em|dt fab|dt fabricação|data fabricação|data de fab|produção|prod em|embalado|data de abate"
        "|data de congelamento|ano de fabrico|ano de fabricação",
        "data conf|data di conf|data prod|data di prod|lavorato il|sezionato il|macellato il"
        "|pescato il|data di macellazione|data di raccolta|data di deposizione|data di congelamento"
        "|anno di costruzione|anno di fabbricazione|anno di produzione|imbott il|sterilizzato il"
        "|data di imbottigliamento",
        "productie|geprod op|verpakt|verp datum|slachtdatum|geslacht op|vangstdatum|bouwjaar|oogstdatum"
        "|invriesdatum|datum van productie",
        "förpackad|förpackad den|förpackningsdatum|packdatum|tillv datum|tillv|tillverkningsår|slaktdatum"
        "|fångstdatum|nedfryst den|pakket|pakkedato|prod dato|produktionsår|fremstillingsdato|nedfrosset"
        "|produsert|produksjonsdato|produsert dato|pakket dato|valmistuspäivä|valmistuspvm|pakkauspäivä|pakattu"
        "|pagaminimo data|pagaminta|ražošanas datums|ražots|valmistamise kuupäev|valmistatud",
        "data pakowania|data wytw|data wytworzenia|wyprod|zapakowano|rok produkcji|vyrobeno|vyrobeno dne"
        "|datum balení|baleno|vyrobené|rok výroby|gyártva|gyártás dátuma|gyártási idő|csomagolva|csomagolás ideje"
        "|data fabricației|data fabricării|fabricat la|produs la|data ambalării|datum proizvodnje|proizvedeno"
        "|datum pakiranja|üretim tar|ürt tarihi|üretim|imal tarihi|imalat tarihi|paketleme tarihi",
        "дата производства|дата выработки|дата упаковывания|дата упаковки|изготовлен|произведено|произведен"
        "|выработано|упаковано|дата розлива|дата виготовлення|виготовлено|вироблено|дата на производство"
        "|произведено на|датум производње|ημερομηνία παραγωγής|ημερ παραγωγής|ημ παραγωγής|ημερομηνία συσκευασίας"
        "|παραγωγή|תאריך ייצור|تاريخ الإنتاج|تاريخ الصنع|ngày sản xuất|nsx|tanggal produksi|tarikh dikilang"
        "|tarikh pengeluaran|tarikh pembuatan",
        "生产日|制造年月日|产出日期|屠宰日期|捕捞日期|灭菌日期|封装日期|罐装日期|充装日期|出品日期|烘焙日期|制作日期|加工日|包装年月日|加工年月日|포장일|생산일|생산일자|제조년월일"
        "|วันที่ผลิต|ผลิตเมื่อ|วันผลิต",
    ),
    "lot": (
        "lot|lot no|lot nr|lot num|lot number|lot code|lot id|lot batch|lot batch no|lotno|batch|batch no|batch nr"
        "|batch num|batch number|batch code|batch id|batch lot|batch lot no|b no|b nr|bno|b n|bn|bt no|bch|bch no"
        "|l no|lno|production lot|production batch|mfg lot|mfg lot no|lot mfg|control no|control number|ctrl no"
        "|production code|prod code|manufacturing lot|manufacturing batch|packing lot|lot ref",
        "charge|chargen nr|charge nr|charge no|chargen|chargennummer|chargencode|chargennr|chargenbezeichnung|ch b"
        "|ch nr|chb|losnummer|los nr|los|loskennzeichnung|partie|partie nr|partienummer|lot kennung",
        "n de lot|no de lot|numéro de lot|num de lot|n lot|lot n|code lot|numéro du lot|lot de fabrication",
        "lote|lote n|lote no|lote nro|lote num|n de lote|no de lote|nro de lote|nro lote|número de lote|num lote"
        "|num de lote|cod lote|código de lote|partida|lote de fabricación",
        "lotto|lotto n|lotto no|lotto nr|n lotto|n di lotto|numero di lotto|numero lotto|codice lotto|partita"
        "|lotto di produzione",
        "partijnummer|partij|partij nr|lotnummer|lot nummer|chargenummer|batchnummer|productielot|número do lote"
        "|lote de fabrico|código do lote",
        "nr partii|numer partii|partia|satsnummer|batchnr|partinr|partinummer|šarže|č šarže|parti no|номер партии"
        "|партия|gyártási szám|erä|erätunnus",
        "批号|生产批号|产品批号|批次|批次号|生产批次|批次编号|批次號|批號|製造批號|ロット|ロット番号|製造ロット|로트|로트번호|제조번호",
        "batch ref|bat no|batch lot nr|lot or batch|batch or lot|lot and batch|lot batch nr|lot batch number"
        "|batch lot number|mfg batch|mfg batch no|packing batch|production batch no|production lot no"
        "|manufacturing lot no|trace code|traceability no|lot control|lot control no|lot code no|batch code no"
        "|lt no|lot lote|lot charge|lot batch code",
        "ch bez|ch bezeichnung|chg|chg nr|ch b nr|charg|charg nr|chargen bez|charge lot|charge los|lot charge nr"
        "|l nr|losbezeichnung|ch no|produktionscharge|herstellcharge|lot los nr",
        "n lot lot n|nº lot|numéro lot|réf lot|lot fab|n de fabrication lot|lote lot|lote serie|lote cad|l lote"
        "|no lote|n lote|lote de producción|lote producción|nro de lote de fabricación|lote fab|nr lote"
        "|nr de lote|lote fabrico|lotto lot|lot lotto|nr lotto|num lotto|lotto produzione|lotto di fabbricazione",
        "productiecode|lot nr charge|partijcode|sats|sats nr|partikod|eränro|eränumero|partija|partijos nr"
        "|partijos numeris|partijas nr|partii nr|nr serii|numer serii|seria|seria nr|nr partii serii|nr lot"
        "|č šarže č|číslo šarže|č š|šarža|číslo výrobnej dávky|výrobní dávka|gy sz|gyártási tétel|tételszám|lotul"
        "|lotul nr|nr lotului|serie lot|serija|broj serije|lot br|broj lota|številka serije|parti|parti numarası"
        "|parti seri no|партия номер|серия|серия номер|номер серии|партія|номер партії|партида|партиден номер"
        "|παρτίδα|αρ παρτίδας|αριθμός παρτίδας|מספר אצווה|אצווה|رقم التشغيلة|رقم الدفعة|التشغيلة|số lô|số lô sx"
        "|lô sx|no bets|nomor bets|kode produksi|no kelompok|nombor kelompok",
        "批次码|制造批号|灭菌批号|产品批次|制造批次|生产批号批次|批号编号|生产批|批次号码|ロットNO|ロットナンバー|製造記号|เลขที่ผลิต|รุ่นที่ผลิต|ครั้งที่ผลิต"
        "|หมายเลขล็อต",
    ),
    "serial_number": (
        "s n|sn|s no|sno|ser|ser no|ser nr|ser num|ser number|serno|serial|serial no|serial nr|serial num"
        "|serial number|serial code|serial id|unit serial|unit serial no|unit serial number|device serial"
        "|device serial no|device serial number|product serial|product serial no|product serial number"
        "|machine serial no|machine serial|machine no|manufacturer serial number|mfg serial|mfg s n|service tag|esn"
        "|equipment serial|equipment serial no|instrument serial no|factory serial|factory no|unit s n|serial n",
        "seriennummer|serien nr|seriennr|serien no|serie nr|ser nummer|fabriknummer|fabrik nr|fabr nr"
        "|fabrikationsnummer|gerätenummer|geräte nr|gerätenr|maschinennummer|maschinen nr|masch nr|werknummer|werk nr"
        "|gerät nr|fertigungsnummer|fertigungs nr",
        "numéro de série|n de série|no de série|num de série|n série|no série|num série|série n|série no|numéro série"
        "|série|n fabrication|numéro de fabrication",
        "número de serie|n de serie|no de serie|nro de serie|núm de serie|num de serie|n serie|no serie|nro serie"
        "|núm serie|serie n|serie no|serie|n s|serie del equipo|número serie|número de série|número série",
        "numero di serie|n di serie|numero seriale|numero serie|num di serie|matricola|matricola n|n matricola"
        "|numero di matricola|seriale|seriale n|codice seriale",
        "serienummer|serie nummer|serienr|serie nr|numer seryjny|nr seryjny|nr ser|sériové číslo|výrobní číslo|v č"
        "|sarjanumero|seri no|серийный номер|заводской номер|заводской №|зав №|gyári szám",
        "序列号|产品序列号|设备序列号|出厂编号|出厂序号|机身编号|机身号|机身序列号|机号|机器编号|设备编号|序列號|序號|製造番号|シリアル番号|シリアル|일련번호|시리얼번호",
        "imei|imei 1|imei 2|imei no|vin no|vin number|vehicle identification number|chassis no|chassis number"
        "|cell id|cell serial|cell serial no|cell sn|pack s n|pack serial|pack serial no|pack serial number"
        "|module s n|module serial no|module serial number|battery s n|battery serial|battery serial no"
        "|battery serial number|battery id|inverter s n|inverter serial no|product sn|sn no|s n nr|serial nos"
        "|serial id no|pump serial no|motor serial no|controller s n|system s n|system serial no|device s n"
        "|device id|machine s n|machine serial number|meter s n|sensor s n|sensor serial no|tool serial no"
        "|tool s n|serial no of unit|snid|ser no of unit|individual serial no",
        "s nr|fabr nummer|fertig nr|masch nummer|geräte sn|fahrgestellnummer|fahrgestell nr|fgst nr"
        "|fahrzeug ident nr|fin nr|herstellnummer|herst nr|gerätenr fd|sn nummer|seriennr sn",
        "s n n|n série s n|n de châssis|numéro de châssis|n matricule|numéro d'appareil|n appareil"
        "|num fabrication|n de fabrication|nº fab|n fab|n de fabricación|número de fabricación|nro fabricación"
        "|número de chasis|n chasis|serial n de serie|número do chassi|n de fabrico|matr|matr n|matr nr|n matr"
        "|nr matricola|numero matricola|nr serie|numero di fabbrica|n fabbrica|n di fabbrica|n fabbricazione"
        "|numero di telaio|num matricola",
        "fabricagenummer|chassisnummer|machinenummer|toestelnummer|tillv nr|tillverkningsnummer|tillverknings nr"
        "|produksjonsnummer|fabrikationsnr|sarjanro|valm nro|valmistenumero|nr fabr|nr fabryczny|numer fabryczny"
        "|nr urządzenia|nr ser urządzenia|výr č|výrobní č|výrobné číslo|sér č|sériové č|sorozatszám|gyári sz"
        "|gyártási sorszám|număr de serie|nr de serie|serijski broj|tvornički broj|serijska številka"
        "|seri numarası|şasi no|сер номер|сер №|серийный №|зав номер|заводской н|зав н|номер изделия"
        "|серійний номер|заводський номер|сериен номер|σειριακός αριθμός|αριθμός σειράς|αρ σειράς|מספר סידורי"
        "|الرقم التسلسلي|رقم تسلسلي|số sê ri|số máy|nomor seri|no seri|nombor siri|no siri",
        "出厂号|产品编码序列号|机器序列号|电池编号|电池序列号|设备号|整机编号|产品序号|车架号|发动机号|电机编号|主机编号|仪器编号|SN码|機身號碼|產品序號|製造NO|機番|号機|シリアルNO"
        "|제품번호 시리얼|기기번호|หมายเลขเครื่อง|หมายเลขซีเรียล",
    ),
    "weight_volume": (
        "net|net wt|net weight|nett|nett wt|nett weight|net contents|net content|net cont|net volume|net vol|net qty"
        "|net quantity|net mass|netwt|qty|quantity|qnty|contents|content|cont|weight|wt"
        "|drained weight|drained wt|dr wt|drained net weight|vol|volume|capacity|count|pack size|pack of|n w|nw"
        "|nt wt|unit weight|total weight|fill weight|fill volume|pieces|pcs|pcs qty|pcs per box"
        "|contains net|mass|minimum net weight|average net weight|package contents|pack contents|pack quantity"
        "|pieces per pack",
        "nettogewicht|netto|netto gewicht|netto inhalt|nettofüllmenge|nettoinhalt|füllmenge|nennfüllmenge|füllgewicht"
        "|inhalt|gewicht|abtropfgewicht|stückzahl|menge|volumen|packungsinhalt|einwaage"
        "|fischeinwaage|fleischeinwaage|rauminhalt|nettovolumen|anzahl|packungsgröße",
        "poids net|poids net égoutté|poids égoutté|poids|contenu|contenu net|contenance|volume net|quantité"
        "|quantité nette|qté|qte|pds net|p net|poids net à l'emballage|contenance nette|masse nette|capacité",
        "peso neto|peso escurrido|peso neto escurrido|peso|contenido|contenido neto|cont neto|cont net"
        "|cantidad|cantidad neta|volumen neto|cant|masa neta|p neto|capacidad",
        "peso netto|peso sgocciolato|contenuto|contenuto netto|quantità|quantità netta|volume netto"
        "|capacità|peso netto sgocciolato",
        "inhoud|netto inhoud|uitlekgewicht|hoeveelheid|nettovolume|aantal|peso líquido|peso liq|conteúdo"
        "|conteúdo líquido|cont líquido|peso escorrido|quantidade|peso drenado|peso líquido drenado",
        "masa netto|waga netto|ilość|nettovikt|nettovægt|nettovekt|nettopaino|sisältö|hmotnost|objem|net ağırlık"
        "|net miktar|масса нетто|вес нетто|объем|nettó tömeg",
        "净含量|净重|净容量|净量|规格|固形物|固形物含量|重量|容量|数量|体积|含量|沥干物|淨重|淨含量|内容量|正味量|正味重量|중량|내용량|순중량",
        "qty box|qty pack|qty carton|qty ctn|qty per box|qty per carton|qty per pack|quantity per carton"
        "|quantity per box|quantity per pack|box quantity|box qty|carton qty|carton quantity|pack qty"
        "|net weight when packed|wt net|weight net|net fill|net fill weight|contents net|n wt|drained net wt"
        "|nominal weight|min weight|minimum weight|avg weight|average weight|approx weight|approx net weight"
        "|nominal volume|total volume|total qty|total quantity|units per box|units per pack|number of pieces"
        "|no of pieces|no of tablets|number of tablets|no of units|pieces per box|piece count|net product weight"
        "|net content weight|net wt vol|net wt contents|contents net wt|liquid contents|qtty",
        "inh|nettofüllm|nettogew|abtropfgew|füllm|inhalt ca|anzahl stück|einzelgewicht|nennvolumen|nenninhalt"
        "|packungsmenge|gesamtmenge|gewicht netto|nettogewicht ca|nettoinhalt ca|verpackungseinheit",
        "qté nette par boîte|poids net ég|poids net minimum|poids moyen|vol net|contenu net total|nb de pièces"
        "|nombre de pièces|contenance totale|conten net|contenido net|peso n|peso esc|peso aprox"
        "|unidades por caja|cant por caja|vol neto|volumen nominal|masa drenada|cont líq|conteúdo líq|qtd|qtde"
        "|quant|peso unitário|peso total|qtà|quantità per confezione|numero pezzi|n pezzi|peso medio"
        "|volume nominale|peso netto minimo",
        "aantal stuks|netto vol|netto hoeveelheid|uitgelekt gewicht|nettovikt ca|nettomängd|nettoindhold"
        "|drænet vægt|nettoinnhold|nettomasse|nettosisältö|paino|zawartość netto|zawartość|pojemność|objętość"
        "|objętość netto|masa netto po odcieku|liczba sztuk|čistá hmotnost|hmotnost obsahu|čistý obsah|obsah"
        "|množství|tömeg|töltőtömeg|űrtartalom|tartalom|nettó térfogat|mennyiség|nettó mennyiség|cantitate netă"
        "|gramaj|conținut net|volum net|greutate netă|neto količina|neto masa|neto težina|neto kiekis|neto masė"
        "|neto svars|neto kogus|netomass|net ağ|adet|масса|вес|кол во|количество|номинальный объем|объем нетто"
        "|маса нетто|об'єм|вага нетто|нето|нетно тегло|нето тегло|обем|нето количество|καθαρό βάρος|βάρος"
        "|περιεχόμενο|καθαρός όγκος|משקל נטו|תכולה|נפח|الوزن الصافي|الوزن|السعة|khối lượng tịnh|thể tích thực"
        "|trọng lượng tịnh|berat bersih|isi bersih|kandungan bersih",
        "净含量规格|规格净含量|装量|内装数量|件数|包装规格|净容积|净重量|淨容量|固形量|内容総量|순용량|น้ำหนักสุทธิ|ปริมาตรสุทธิ|ปริมาณสุทธิ",
    ),
    "barcode_digits": (
        "gtin|gtin 8|gtin 12|gtin 13|gtin 14|gtin no|ean|ean 8|ean 13|ean code|ean no|ean nr|upc|upc a|upc code|upc no"
        "|barcode|barcode no|bar code|bar code no|isbn|isbn 13|itf 14|sscc|case code|case gtin|jan code|ean upc"
        "|product barcode|scan code",
        "strichcode|ean nummer|barcode nummer|code barres|code à barres|code ean|gencod|código de barras|cod barras"
        "|cod de barras|código ean|codice a barre|codice ean|streepjescode|barcodenummer|kod kreskowy|штрихкод",
        "条码|条形码|商品条码|产品条码|商品条形码|条码号|條碼|國際條碼|バーコード|바코드",
        "ean 13 code|gtin ean|ean gtin|upc ean|gtin upc|cip|cip 13|product code gtin|gtin product code"
        "|barcode number|barcode nr|ean barcode|upc number|gtin number|gtin code|gtin 14 case|ean number|case upc"
        "|unit upc|consumer upc|code à barre|code barre|cod ean|código barras|códigos de barras|código gtin"
        "|cod de barra|cod a barre|cod barre|strichcode nr|strichcode nummer|ean strichcode|ean code nr"
        "|barcode ean|streckkod|ean kod|stregkode|stregkodenummer|strekkode|viivakoodi|kod ean|čárový kód"
        "|čiarový kód|vonalkód|vonalkód szám|cod de bare|barkod|barkod no|штриховой код|баркод|γραμμωτός κώδικας"
        "|ברקוד|باركود|الباركود|mã vạch|kod bar|条形码编号|商品条码号|条码编号|国际条码|JANコード|บาร์โค้ด",
    ),
    "contact": (
        "tel|tel no|telephone|telephone no|phone|phone no|phone number|ph|ph no|call|call us|call us on|call us at"
        "|call toll free|fax|fax no|hotline|toll free|tollfree|customer service|customer services|customer care"
        "|customer care no|customer support|consumer service|consumer services|consumer care|consumer care no"
        "|consumer line|consumer helpline|helpline|help line|careline|care line|support|e mail|email|email us|mail"
        "|mail us|web|web site|website|visit|visit us|visit us at|visit us on|visit our website|contact|contact us"
        "|contact no|for more information|more info|for info|info|questions|questions or comments|internet|homepage"
        "|online|mobile|mob|whatsapp|toll free no|for complaints|feedback|enquiries|order line|service line|cell"
        "|find us at|follow us|learn more|scan or visit|emergency phone|emergency tel",
        "kundenservice|kundendienst|kontakt|telefon|telefonnummer|telefax|verbraucherservice|verbrauchertelefon"
        "|service hotline|servicehotline|service nummer|service telefon|infotelefon|notruf|rufnummer|mehr infos"
        "|webseite|besuchen sie uns|fragen|bestellhotline",
        "service consommateurs|service consommateur|service clients|service client|téléphone|tél|tél no|courriel"
        "|site web|site internet|contactez nous|appelez le|numéro vert|n vert|n cristal|renseignements"
        "|service après vente|rejoignez nous|plus d'infos",
        "atención al cliente|atención al consumidor|servicio al cliente|servicio de atención al cliente|teléfono|telf"
        "|tfno|tlf|correo|correo electrónico|página web|sitio web|contacto|línea gratuita|llame al|visite"
        "|servicio al consumidor|visítenos",
        "contatti|contatto|servizio clienti|servizio consumatori|telefono|numero verde|sito|sito web|assistenza"
        "|assistenza clienti|info consumatori|klantenservice|consumentenservice|telefoon|telefoonnummer"
        "|atendimento ao cliente|atendimento ao consumidor|apoio ao cliente|apoio ao consumidor|sac|telefone|linha"
        " de apoio|correio eletrônico|infolinia|obsługa klienta|kundtjänst|konsumentkontakt|kundeservice|тел|телефон",
        "网址|网站|官网|官方网站|电话|客服电话|客服热线|服务热线|服务电话|咨询电话|咨询热线|消费者热线|消费者服务热线|联系电话|联系方式|热线|传真|邮箱|电子邮箱|電話|客服專線"
        "|お客様相談室|お問い合わせ|고객센터|고객상담실|소비자상담실|전화",
        "in emergency call|emergency call|in case of emergency call|emergency contact|emergency telephone"
        "|emergency telephone number|emergency tel no|emergency number|emergency phone number|24 h emergency"
        "|24 hour emergency|24 hr emergency|chemtrec|poison control|poison centre|poison center"
        "|poison information|customer hotline|consumer hotline|customer helpline|customer support line|infoline"
        "|scan or go to|find out more at|learn more at|visit us online|for further information|more information"
        "|for more info|product information line|questions call|comments call|call toll free us|toll free number"
        "|freephone|tel fax|phone fax|office tel|sales tel|technical support|tech support|support line"
        "|service contact|medical information|consumer information|drug information|order hotline|website address"
        "|web address|email address",
        "giftnotruf|notfallnummer|notrufnummer|notfall tel|notfalltelefon|kostenlose hotline|gratis hotline"
        "|info hotline|kundenhotline|verbraucher hotline|beratung|technischer kundendienst|rufen sie uns an"
        "|mehr infos unter|mehr informationen|weitere informationen|infos unter|kontakt unter|internetseite"
        "|homepage adresse|tel nr|telefon nr|fax nr|e mail adresse|ihr kontakt|giftinformationszentrum"
        "|vergiftungsinformationszentrale",
        "sav|service sav|n azur|numéro d'urgence|centre antipoison|appel d'urgence|urgence|infos conso|info conso"
        "|tél sav|ligne consommateurs|nous contacter|votre contact|plus d'informations|pour plus d'informations"
        "|rendez vous sur|retrouvez nous sur|visitez notre site|línea de atención|línea de atención al cliente"
        "|línea de servicio|línea de consumidor|llámenos|llámanos|teléfono gratuito|teléfono de emergencia"
        "|teléfono de emergencias|emergencias|más información|para más información|información al consumidor"
        "|síguenos|tel gratuito|correo e|servizio consumatore|numero gratuito|linea verde|tel verde"
        "|info consumatore|emergenza|telefono emergenza|centro antiveleni|per informazioni|maggiori informazioni"
        "|visita il sito|assistenza tecnica|linha de apoio ao cliente|linha verde|número de emergência"
        "|telefone de emergência|central de atendimento|mais informações|fale conosco"
        "|serviço de atendimento ao consumidor|contacte nos|apoio ao consumidor tel",
        "consumentenlijn|consumentendienst|klantendienst|bel gratis|antigifcentrum|meer info|meer informatie"
        "|noodnummer|kundservice|konsumenttjänst|giftinformation|kundetjeneste|forbrugerservice|forbrukerservice"
        "|kuluttajapalvelu|asiakaspalvelu|yhteystiedot|telefon alarmowy|tel alarmowy|obsługa konsumenta"
        "|dział obsługi klienta|więcej informacji|strona internetowa|zákaznická linka|zákaznický servis|infolinka"
        "|bližší informace|vevőszolgálat|ügyfélszolgálat|fogyasztói vonal|telefonszám|relații clienți"
        "|serviciul clienți|informații|služba za korisnike|müşteri hizmetleri|danışma hattı"
        "|tüketici danışma hattı|tüketici hattı|горячая линия|телефон горячей линии|служба поддержки|тел факс"
        "|сайт|эл почта|гаряча лінія|за контакти|телефон за контакт|εξυπηρέτηση πελατών|τηλέφωνο|τηλ"
        "|τηλ κέντρο δηλητηριάσεων|שירות לקוחות|טלפון|خدمة العملاء|هاتف|tổng đài|hotline cskh|layanan konsumen"
        "|khidmat pelanggan",
        "售后电话|售后服务电话|免费热线|全国热线|全国服务热线|消费者咨询热线|应急电话|紧急电话|24小时应急电话|服务专线|网店|公众号|官方网址|客服|联系方式电话|消费者服务电话|お問合せ|お問い合わせ先"
        "|お客様センター|お客様窓口|フリーダイヤル|電話番号|고객상담|고객상담전화|소비자상담|홈페이지|โทร|ศูนย์บริการลูกค้า|สายด่วน",
    ),
    "ingredients": (
        "ingredients|ingredient|ingredients list|list of ingredients|active ingredient|active ingredients"
        "|inactive ingredients|other ingredients|composition|contains|made from|made with|consists of|materials"
        "|excipients|each tablet contains|each capsule contains|each ml contains|each gram contains|each 5 ml contains",
        "zutaten|zutatenliste|bestandteile|inhaltsstoffe|enthält|zusammensetzung|wirkstoff|wirkstoffe|sonstige"
        " bestandteile|hilfsstoffe|1 tablette enthält|eine tablette enthält",
        "ingrédients|ingrédient|composition|contient|liste des ingrédients|composé de|principe actif|excipients"
        "|ingredientes|composición|contiene|lista de ingredientes|principio activo|excipientes|componentes"
        "|ingredienti|composizione|principio attivo|eccipienti|ingrediënten|bevat|samenstelling|contém|composição"
        "|składniki|skład|ingredienser|innehåll av|ainesosat|složení|içindekiler|состав|összetevők|ingrediente",
        "配料|配料表|成分|原料|主要成分|主要原料|全成分|成分表|原材料|原材料名|原料成份|成份|有效成分|辅料|원재료명|원재료|성분",
        "inci|ingr|ingred|each film coated tablet contains|film coated tablet contains"
        "|each coated tablet contains|each sachet contains|each vial contains|each ampoule contains"
        "|each g contains|each dose contains|each soft gelatin capsule contains|each softgel contains"
        "|each lozenge contains|each suppository contains|medicinal ingredients|non medicinal ingredients"
        "|dietary ingredients|contains the following|active substance|active substances|active constituents"
        "|active constituent|constituents|main ingredients|key ingredients|full ingredients|excipient"
        "|fabric composition|fibre composition|fiber content|fibre content|material composition|allergens in bold",
        "1 filmtablette enthält|eine filmtablette enthält|1 kapsel enthält|eine kapsel enthält|1 g salbe enthält"
        "|1 g creme enthält|1 g gel enthält|1 ml lösung enthält|1 ml enthält|1 g enthält|100 g enthalten"
        "|100 ml enthalten|1 ampulle enthält|1 beutel enthält|1 brausetablette enthält|jede tablette enthält"
        "|jede filmtablette enthält|jede kapsel enthält|arzneilich wirksamer bestandteil|wirksamer bestandteil"
        "|wirksame bestandteile|weitere bestandteile|weitere inhaltsstoffe|materialzusammensetzung|zus",
        "chaque comprimé contient|chaque gélule contient|un comprimé contient|une gélule contient"
        "|1 comprimé contient|chaque sachet contient|pour un comprimé|substance active|substances actives"
        "|principes actifs|composition qualitative|contient du|contient de|cada comprimido contiene"
        "|cada comprimido recubierto contiene|cada cápsula contiene|cada tableta contiene|cada sobre contiene"
        "|cada ml contiene|cada 100 g contienen|un comprimido contiene|una cápsula contiene|sustancia activa"
        "|ogni compressa contiene|una compressa contiene|ogni compressa rivestita contiene|ogni capsula contiene"
        "|1 compressa contiene|ogni bustina contiene|100 g contengono|contiene latte|cada comprimido contém"
        "|cada cápsula contém|um comprimido contém|substância ativa",
        "werkzame stof|hulpstoffen|elke tablet bevat|bestaat uit|samengesteld uit|ingrediensförteckning"
        "|innehåller|hjälpämnen|verksamt ämne|indeholder|indholdsstoffer|inneholder|innholdsstoffer|sisältää"
        "|ainekset|koostumus|vaikuttava aine|każda tabletka zawiera|1 tabletka zawiera|jedna tabletka zawiera"
        "|substancja czynna|substancje pomocnicze|zawiera|jedna tableta obsahuje|1 tableta obsahuje|obsahuje"
        "|léčivá látka|pomocné látky|zloženie|ingrediencie|hatóanyag|segédanyagok|tartalmaz|compoziție|conține"
        "|substanța activă|sastojci|sastav|sestavine|vsebuje|sudėtis|sudedamosios dalys|sastāvs|sastāvdaļas"
        "|koostis|koostisosad|etken madde|yardımcı maddeler|içerik bilgisi|ингредиенты|действующее вещество"
        "|вспомогательные вещества|склад|складники|съставки|съдържа|συστατικά|σύνθεση|περιέχει|רכיבים|מרכיבים"
        "|المكونات|مكونات|thành phần|komposisi|bahan bahan|ramuan",
        "配料成分|原料及辅料|主要配料|产品配料|产品成分|活性成分|主要原辅料|辅料成分|每片含|每粒含|每袋含|每支含|本品每片含|全成分表|面料成分|面料|成分及含量|有効成分|配合成分|内容成分|전성분"
        "|원료명|ส่วนประกอบ|ส่วนประกอบสำคัญ|ส่วนผสม",
    ),
    "warning": (
        "warning|warnings|caution|danger|hazard|precaution|precautions|beware|notice safety"
        "|keep out of reach of children|keep out of the reach of children|out of reach of children"
        "|keep away from children|keep away from fire|keep away from heat|avoid contact with eyes"
        "|avoid contact with skin|for external use only|external use only|highly flammable|extremely flammable"
        "|flammable|harmful if swallowed|harmful|toxic|poison|corrosive|irritant|may contain|may contain traces of"
        "|may cause|allergy advice|allergy warning|allergen information|allergens|wear protective gloves"
        "|wear eye protection|high voltage|risk of electric shock|choking hazard|do not swallow|do not ingest"
        "|if swallowed|in case of contact with eyes|causes serious eye irritation|hot surface|sharp edges|not for"
        " children under|do not incinerate|contents under pressure|pressurised container|pressurized container",
        "achtung|warnung|vorsicht|gefahr|warnhinweis|warnhinweise|gefahrenhinweis|sicherheitshinweis|darf nicht in die"
        " hände von kindern gelangen|außer reichweite von kindern|für kinder unzugänglich|kann spuren von"
        "|leicht entzündlich|leichtentzündlich|hochentzündlich|gesundheitsschädlich|ätzend|giftig|reizt die augen"
        "|nicht verschlucken|hochspannung|nur zur äußerlichen anwendung|heiße oberfläche|erstickungsgefahr"
        "|schutzhandschuhe tragen|allergiehinweis|kühl und trocken gefahr",
        "avertissement|mise en garde|tenir hors de portée des enfants|hors de portée des enfants"
        "|ne pas laisser à la portée des enfants|peut contenir|peut contenir des traces|dangereux|usage externe"
        "|très inflammable|inflammable|éviter le contact|nocif|toxique|ne pas avaler|haute tension"
        "|provoque une irritation|surface chaude|attention danger|précautions d'emploi",
        "advertencia|advertencias|precaución|precauciones|peligro|atención|cuidado"
        "|manténgase fuera del alcance de los niños|mantener fuera del alcance de los niños"
        "|fuera del alcance de los niños|puede contener|puede contener trazas|no ingerir|inflamable|nocivo|tóxico"
        "|evitar el contacto|uso externo|alta tensión|alto voltaje|superficie caliente|alérgenos|riesgo de",
        "avvertenza|avvertenze|attenzione|pericolo|tenere fuori dalla portata dei bambini"
        "|fuori dalla portata dei bambini|può contenere|può contenere tracce|infiammabile|uso esterno|non ingerire"
        "|evitare il contatto|alta tensione|waarschuwing|waarschuwingen|let op|gevaar|voorzichtig"
        "|buiten bereik van kinderen|buiten het bereik van kinderen houden|kan sporen bevatten|ontvlambaar|atenção"
        "|aviso|perigo|manter fora do alcance das crianças|fora do alcance das crianças|pode conter|não ingerir"
        "|ostrzeżenie|uwaga|niebezpieczeństwo|chronić przed dziećmi|varning|advarsel|varoitus|upozornění|varování"
        "|uyarı|dikkat|внимание|осторожно|берегите от детей|хранить в недоступном для детей месте",
        "警告|注意|危险|小心|当心|请勿|切勿|禁止|远离儿童|避免儿童接触|儿童不宜|过敏原|过敏原信息|致敏物质|易燃|高温|有毒|注意事项|警示|使用上の注意|危険|경고|주의|위험",
        "highly flammable liquid and vapour|flammable liquid and vapour|flammable liquid|flammable gas"
        "|extremely flammable aerosol|extremely flammable gas|causes skin irritation|causes severe skin burns"
        "|causes severe skin burns and eye damage|causes serious eye damage|harmful if inhaled"
        "|harmful in contact with skin|toxic if swallowed|toxic if inhaled|fatal if swallowed|fatal if inhaled"
        "|may be corrosive to metals|may cause an allergic skin reaction|may produce an allergic reaction"
        "|may cause respiratory irritation|may cause drowsiness or dizziness|may cause cancer"
        "|very toxic to aquatic life|toxic to aquatic life|harmful to aquatic life|may damage fertility"
        "|suspected of causing|wear protective clothing|avoid breathing|avoid breathing dust"
        "|avoid release to the environment|keep away from open flames|keep away from ignition sources"
        "|keep away from sparks|if on skin|if in eyes|if inhaled|get medical advice|get immediate medical advice"
        "|call a poison center|call a poison centre|do not breathe dust|do not breathe vapours|do not get in eyes"
        "|do not pierce or burn|do not short circuit|do not disassemble|do not dispose of in fire"
        "|do not dispose in fire|do not heat above|do not crush|do not open or disassemble|risk of fire"
        "|risk of explosion|risk of burns|fire hazard|explosion hazard|danger of suffocation|danger of explosion"
        "|risk of suffocation|suffocation hazard|strangulation hazard|to avoid suffocation"
        "|to avoid danger of suffocation|laser radiation|do not stare into beam|not for human consumption"
        "|not for internal use|for veterinary use only|biohazard|allergen|contains allergens|burn hazard"
        "|crush hazard|rotating parts|ejection hazard|wear ear protection|wear safety glasses|wear gloves"
        "|keep out of the sight and reach of children|keep out of sight and reach of children|keep from children"
        "|store out of reach of children|this product can expose you|contains nuts|contains milk soy"
        "|may contain nuts|may contain milk",
        "flüssigkeit und dampf leicht entzündbar|flüssigkeit und dampf entzündbar|extrem entzündbares aerosol"
        "|leicht entzündbar|verursacht schwere augenreizung|verursacht schwere augenschäden"
        "|verursacht hautreizungen|verursacht schwere verätzungen|kann allergische hautreaktionen verursachen"
        "|kann allergische reaktionen hervorrufen|kann schläfrigkeit und benommenheit verursachen"
        "|kann die atemwege reizen|gesundheitsschädlich bei verschlucken|gesundheitsschädlich bei einatmen"
        "|giftig für wasserorganismen|sehr giftig für wasserorganismen|schädlich für wasserorganismen"
        "|nicht ins feuer werfen|nicht in feuer werfen|von hitze fernhalten|vor hitze schützen"
        "|behälter steht unter druck|augenschutz tragen|schutzbrille tragen|gehörschutz tragen|bei verschlucken"
        "|bei einatmen|bei berührung mit den augen|bei berührung mit der haut|bei kontakt mit den augen"
        "|explosionsgefahr|brandgefahr|verbrennungsgefahr|stromschlaggefahr|lebensgefahr|quetschgefahr"
        "|verletzungsgefahr|laserstrahlung|nicht zum verzehr geeignet|darf nicht in kinderhände gelangen"
        "|von kindern fernhalten|arzneimittel für kinder unzugänglich aufbewahren"
        "|arzneimittel unzugänglich für kinder aufbewahren|kurzschluss vermeiden|nicht kurzschließen"
        "|nicht einatmen|nicht öffnen oder beschädigen|enthält allergene|allergene",
        "liquide et vapeurs très inflammables|liquide et vapeurs inflammables|aérosol extrêmement inflammable"
        "|provoque une sévère irritation des yeux|provoque de graves lésions des yeux|provoque de graves brûlures"
        "|provoque une irritation cutanée|peut provoquer une allergie cutanée"
        "|peut produire une réaction allergique|peut irriter les voies respiratoires|nocif en cas d'ingestion"
        "|nocif par inhalation|toxique pour les organismes aquatiques|très toxique pour les organismes aquatiques"
        "|nocif pour les organismes aquatiques|ne pas jeter au feu|ne pas percer|ne pas exposer à"
        "|porter des gants|porter des gants de protection|en cas de contact avec les yeux|en cas d'ingestion"
        "|en cas de contact avec la peau|risque d'explosion|risque d'incendie|risque d'étouffement"
        "|danger d'étouffement|danger d'électrocution|rayonnement laser|ne pas ingérer|ne pas respirer"
        "|garder hors de portée|allergènes|récipient sous pression"
        "|tenir hors de la portée et de la vue des enfants",
        "líquido y vapores muy inflamables|líquido y vapores inflamables|aerosol extremadamente inflamable"
        "|provoca irritación ocular grave|provoca lesiones oculares graves|provoca quemaduras graves"
        "|provoca irritación cutánea|puede provocar una reacción alérgica|puede irritar las vías respiratorias"
        "|nocivo en caso de ingestión|nocivo en caso de inhalación|tóxico para los organismos acuáticos"
        "|muy tóxico para los organismos acuáticos|llevar guantes|llevar guantes de protección|usar guantes"
        "|en caso de ingestión|en caso de contacto con los ojos|en caso de contacto con la piel"
        "|no arrojar al fuego|no perforar|no respirar|riesgo de asfixia|riesgo de explosión|riesgo eléctrico"
        "|peligro de asfixia|mantener alejado del calor|mantener alejado de los niños|recipiente a presión"
        "|radiación láser|no apto para el consumo humano",
        "liquido e vapori facilmente infiammabili|liquido e vapori infiammabili|aerosol altamente infiammabile"
        "|aerosol estremamente infiammabile|provoca grave irritazione oculare|provoca gravi lesioni oculari"
        "|provoca gravi ustioni|provoca irritazione cutanea|può provocare una reazione allergica"
        "|può irritare le vie respiratorie|nocivo se ingerito|nocivo se inalato"
        "|tossico per gli organismi acquatici|molto tossico per gli organismi acquatici"
        "|nocivo per gli organismi acquatici|non gettare nel fuoco|non perforare|non respirare|indossare guanti"
        "|indossare guanti protettivi|in caso di contatto con gli occhi|in caso di contatto con la pelle"
        "|in caso di ingestione|rischio di esplosione|pericolo di soffocamento|rischio di soffocamento"
        "|conservare lontano dal calore|recipiente sotto pressione|radiazione laser"
        "|tenere fuori dalla vista e dalla portata dei bambini|allergeni",
        "licht ontvlambare vloeistof en damp|zeer licht ontvlambare aerosol|veroorzaakt ernstige oogirritatie"
        "|veroorzaakt huidirritatie|veroorzaakt ernstig oogletsel|schadelijk bij inslikken"
        "|giftig voor in het water levende organismen|niet in vuur werpen|draag handschoenen"
        "|gevaar voor verstikking|verstikkingsgevaar|brandbaar|allergenen|líquido e vapor facilmente inflamáveis"
        "|provoca irritação ocular grave|pode provocar uma reação alérgica|nocivo por ingestão|não perfurar"
        "|não queimar|em caso de ingestão|em caso de contacto com os olhos|risco de asfixia"
        "|recipiente sob pressão|contém glúten|não contém glúten|mycket brandfarlig vätska och ånga"
        "|orsakar allvarlig ögonirritation|skadligt vid förtäring|förvaras oåtkomligt för barn|fara"
        "|meget brandfarlig væske og damp|forårsager alvorlig øjenirritation|opbevares utilgængeligt for børn"
        "|meget brannfarlig væske og damp|oppbevares utilgjengelig for barn|helposti syttyvä neste ja höyry"
        "|ärsyttää voimakkaasti silmiä|säilytä lasten ulottumattomissa|vaara|wysoce łatwopalna ciecz i pary"
        "|skrajnie łatwopalny aerozol|działa drażniąco na oczy|działa drażniąco na skórę"
        "|przechowywać w miejscu niedostępnym dla dzieci|może zawierać|nie wrzucać do ognia"
        "|vysoce hořlavá kapalina a páry|způsobuje vážné podráždění očí|uchovávejte mimo dosah dětí|nebezpečí"
        "|veľmi horľavá kvapalina a pary|uchovávajte mimo dosahu detí|fokozottan tűzveszélyes folyadék és gőz"
        "|súlyos szemirritációt okoz|gyermekektől elzárva tartandó|figyelem|veszély"
        "|lichid și vapori foarte inflamabili|provoacă o iritare gravă a ochilor"
        "|a nu se lăsa la îndemâna copiilor|avertisment|atenție|pericol|upozorenje|opasnost"
        "|čuvati izvan dohvata djece|nevarnost|çocukların ulaşamayacağı yerde saklayınız|tehlike|опасно"
        "|предупреждение|огнеопасно|увага|обережно|небезпека|опасност|внимание да се пази от деца|προσοχή"
        "|κίνδυνος|προειδοποίηση|אזהרה|זהירות|תحذير|تحذير|خطر|cảnh báo|lưu ý|peringatan|amaran|perhatian",
        "请远离|避免接触|避免入眼|避免阳光直射|远离火源|远离热源|请放置于儿童不能触及|儿童不能触及|置于儿童不能触及|严禁|致敏原|致敏原信息|可能含有|含有过敏原|警告语|安全警示|危险品|腐蚀性|小心烫伤"
        "|小心触电|高压危险|有电危险|不适宜人群|取扱注意|火気厳禁|高温注意|アレルギー物質|주의사항|คำเตือน|ข้อควรระวัง",
        "contains small parts|enthält kleinteile|enthält kleine teile|contient de petites pièces"
        "|contiene piezas pequeñas|contiene piccole parti|bevat kleine onderdelen|choking hazard small parts",
    ),
    "address": (
        "manufactured by|manufactured for|made by|made for|produced by|produced for|packed by|packed for|packaged by"
        "|distributed by|distributor|dist by|imported by|importer|imported and distributed by|marketed by|mfd by"
        "|mfg by|mfd and mktd by|mktd by|bottled by|sold by|supplied by|developed by|manufacturer|address|head office"
        "|registered office|regd office|importer address|p o box|po box|eu representative|authorised representative"
        "|manufactured and packed by|roasted by|brewed by|exported by|prepared by|assembled by|factory address",
        "hergestellt von|hergestellt für|hergestellt durch|hersteller|vertrieb|vertrieb durch|vertrieben durch"
        "|importeur|importiert durch|importiert von|abgefüllt von|abgefüllt für|abgefüllt durch|inverkehrbringer"
        "|produziert von|produziert für|verpackt von|anschrift|postfach|verpackt durch",
        "fabriqué par|fabriqué pour|produit par|produit pour|distribué par|distributeur|importé par|importateur"
        "|conditionné par|élaboré par|mis en bouteille par|emballé par|fabricant|adresse|siège social|boîte postale",
        "fabricado por|fabricado para|distribuido por|distribuidor|importado por|importador|elaborado por|envasado por"
        "|producido por|fabricante|dirección|domicilio|comercializado por|embotellado por|apartado de correos",
        "prodotto da|prodotto per|distribuito da|distributore|importato da|importatore|confezionato da"
        "|imbottigliato da|fabbricante|produttore|indirizzo|sede legale|stabilimento di|geproduceerd door"
        "|vervaardigd door|verdeeld door|geïmporteerd door|fabrikant|adres|postbus|produzido por|embalado por"
        "|endereço|morada|distribuído por|wyprodukowano przez|producent|dystrybutor|tillverkas av|importör"
        "|valmistaja|výrobce|üretici|изготовитель|производитель|адрес|gyártó",
        "制造商|生产商|生产企业|生产厂家|制造企业|厂址|厂名|地址|经销商|总经销|代理商|委托方|受托方|委托企业|进口商|出品商|出品|公司地址|通讯地址|製造者|製造商|地點|住所|販売者|輸入者"
        "|제조원|판매원|수입원|주소|제조사",
        "ec rep|uk rp|ch rep|eu importer|uk importer|eu rep|responsible person|uk responsible person"
        "|eu responsible person|mfr|mfrd by|manuf by|manufactured and distributed by"
        "|manufactured under licence by|manufactured under license by|marketing authorisation holder"
        "|marketing authorization holder|ma holder|pl holder|product licence holder|product license holder"
        "|licence holder|license holder|authorised rep|uk authorised representative|eu authorised representative"
        "|legal manufacturer|mfg address|distributed in the uk by|distributed exclusively by|sponsored by"
        "|marketed and distributed by|manufactured at|packed at|repacked by|relabelled by|made in the uk by"
        "|produced and packed by|produced and bottled by|brewed and bottled by|distilled and bottled by"
        "|packed for and distributed by|imported into the eu by|eu address|uk address|regd off|corp office",
        "pharm unternehmer|pharmazeutischer unternehmer|pharmazeutischer unternehmer und hersteller"
        "|zulassungsinhaber|mitvertrieb|vertr durch|vertr|hergest für|hergest von|bevollmächtigter"
        "|eu bevollmächtigter|inverkehrgebracht durch|in verkehr gebracht von|im vertrieb von|importeur eu"
        "|parallel vertrieb|parallelimporteur|umverpackt von|hergestellt und abgefüllt von"
        "|gebraut und abgefüllt von|verantwortliche person|lebensmittelunternehmer|eine marke der",
        "titulaire|exploitant|fabriqué et distribué par|importé et distribué par|distribué en france par"
        "|mandataire|responsable de la mise sur le marché|fabriqué en france par|transformé par"
        "|produit et embouteillé par|élevé et mis en bouteille par|mis en bouteille à la propriété par"
        "|une marque de|titular|titular de la autorización|titular de la autorización de comercialización"
        "|importado y distribuido por|fabricado y distribuido por|elaborado y envasado por"
        "|representante autorizado|responsable de comercialización|producido y embotellado por|hecho por"
        "|titolare a i c|titolare|titolare dell'autorizzazione|distr da|fabbr da|importato e distribuito da"
        "|prod da|prodotto e confezionato da|prodotto e distribuito da|prodotto e imbottigliato da|concessionario"
        "|concessionario esclusivo|rappresentante autorizzato|responsabile dell'immissione|officina di produzione"
        "|fabricado e distribuído por|importado e distribuído por|distribuidor exclusivo"
        "|produzido e engarrafado por|engarrafado por|detentor do registo|titular do registro|industrializado por",
        "vervaardigd voor|geproduceerd voor|ingevoerd door|verpakt door|verpakt voor|verantwoordelijke"
        "|registratiehouder|producent importer|podmiot odpowiedzialny|wytwórca|wyprodukowano dla"
        "|producent i dystrybutor|dovozce|distributor pro čr|držitel rozhodnutí|držitel rozhodnutí o registraci"
        "|vyrobeno pro|výrobca|dovozca|vyrába|forgalmazza|forgalmazó|gyártja|importálja|származási hely gyártó"
        "|importator|producător|fabricat de|produs de|distribuit de|proizvođač|proizvodi|uvoznik|distributer"
        "|proizvajalec|imal eden|üretici firma|ithalatçı|ithalatçı firma|dağıtıcı|üretim yeri|импортер"
        "|произведено по заказу|упаковщик|організація імпортер|виробник|імпортер|производител|вносител"
        "|дистрибутор|tillverkare|tillverkad för|producerad av|producerad för|produceret af|produceret for"
        "|fremstillet af|produsent|produsert av|maahantuoja|valmistuttaja|gamintojas|importuotojas|ražotājs"
        "|importētājs|tootja|maaletooja|παρασκευαστής|παράγεται από|διανέμεται από|εισαγωγέας|יצרן|היצרן|יבואן"
        "|صنع بواسطة|إنتاج|المستورد|sản xuất tại|sản xuất bởi|nhà sản xuất|nhập khẩu và phân phối|diproduksi oleh"
        "|dikilangkan oleh|diedarkan oleh|diimport oleh",
        "生产地址|注册地址|生产厂址|制造商地址|厂商|制造厂|制造者|经销地址|注册人|备案人|上市许可持有人|持有人|代工厂|生产者|分装商|品牌商|运营商|總代理|製造廠|廠商名稱|進口商|製造販売元|製造元"
        "|販売元|発売元|輸入元|加工者|제조업소|소재지|수입판매원|유통전문판매원|ผลิตโดย|ผู้ผลิต|จัดจำหน่ายโดย|นำเข้าโดย",
    ),
    OTHER: (
        "made in|product of|produce of|country of origin|origin|assembled in|designed in|printed in|packed in"
        "|manufactured in|produced in|bottled in|imported from|grown in|harvested in|caught in",
        "model no|model number|model name|modell nr|mod no|art no|art nr|article no|article number|artikel nr"
        "|artikelnummer|art number|part no|part number|p n|pn|pno|item no|item number|item code|sku|ref no"
        "|reference no|reference number|product code|product no|product id|product number|catalog no"
        "|catalogue no|cat no|order no|order number|po no|po number|purchase order|invoice no|tracking no|stock no"
        "|drawing no|type no|bestell nr|bestellnummer|material no|material nr|mat nr|sachnummer|teilenummer|teile nr"
        "|customer no|rev no|hardware version|software version|firmware version|fcc id|ic id|licence no|license no"
        "|patent no|reg no|registration no|fssai|fssai lic no|approval no|batch size|lot size"
        "|batch qty|batch quantity|batch weight|batch volume|batch time|lot qty|lot quantity|lot weight|lot volume"
        "|do not sell before|not for sale before",
        "référence|réf|n article|référence produit|número de pieza|modelo no|código de producto|n de artículo|codice"
        " articolo|codice prodotto|cod art|modelo|modell|modèle|modello",
        "temp range|temperature range|temperature|operating temperature|storage temperature|store below|store in|store"
        " at|keep refrigerated|keep frozen|keep cool|keep dry|keep away from sunlight|store in a cool dry place|storage"
        "|storage conditions|refrigerate after opening|once opened|after opening|handle with care|this side up"
        "|do not stack|do not freeze|do not litter|recycle|please recycle|dispose of|shake well|shake well before use"
        "|serving suggestion|serving size|servings per container|servings|serves|nutrition|nutrition facts|nutrition"
        " information|nutritional information|energy|calories|qc passed|quality control|inspected by|satisfaction"
        " guaranteed|new recipe|open here|tear here|push here|fragile|limited edition|free from",
        "hergestellt in|made in germany|ursprung|herkunft|ursprungsland|vor gebrauch schütteln|kühl lagern|trocken"
        " lagern|kühl und trocken lagern|gekühlt lagern|nach dem öffnen|nährwerte|nährwertangaben|serviervorschlag"
        "|fabriqué en|produit en|origine|conserver au frais|à conserver au frais|conserver au sec|agiter avant emploi"
        "|bien agiter avant emploi|suggestion de présentation|valeurs nutritionnelles|fabriqué en france"
        "|fabricado en|hecho en|producto de|origen|país de origen|conservar en lugar fresco y seco|conservar en frío"
        "|agitar antes de usar|agítese antes de usar|información nutricional|prodotto in|fabbricato in|origine italia"
        "|conservare in luogo fresco e asciutto|agitare prima dell'uso|valori nutrizionali|geproduceerd in|gemaakt in"
        "|koel bewaren|koel en droog bewaren|schudden voor gebruik|conservar em local fresco|feito em|fabricado no"
        " brasil|indústria brasileira",
        "input|output|rated voltage|rated power|input voltage|output voltage|power supply ac|battery type|frequency",
        "gross weight|gross wt|gr wt|g w|gw|gross mass|tare weight|tare wt|bruttogewicht|leergewicht|poids brut"
        "|peso bruto|peso lordo|brutogewicht|毛重|皮重",
        "型号|货号|款号|产品名称|品名|品牌|产地|原产地|原产国|执行标准|产品标准号|产品标准|标准号|生产许可证|生产许可证编号|许可证编号|卫生许可证|食品生产许可证|贮存条件|储存条件|储存方法|保存方法"
        "|贮藏|食用方法|使用方法|用法用量|等级|质量等级|规格型号|中国制造|产品类别|品番|型番|原産国|保存方法|栄養成分|모델명|원산지|보관방법",
        "pao|ufi|ufi code|cas|cas no|cas nr|cas number|cas rn|ec no|ec nr|ec number|einecs|einecs no|index no"
        "|un no|un number|un|reach no|reach reg no|ndc|ndc no|npn|pzn|pzn nr|aic|aic n|pl no|ma number"
        "|marketing authorisation no|marketing authorisation number|zul nr|zulassungsnummer|reg nr"
        "|registro sanitario|reg san|n registro|n amm|cn|hs code|tariff no|eclass|ups tracking|ship to|ship from"
        "|deliver to|sscc no ref|sales order|job no|work order|dwg no|drawing nr|spec no|specification no|eori"
        "|vat no|vat reg no|tax id|ust id nr|cvr nr|siret|rev level|mac|mac address|mac id|wlan mac"
        "|bluetooth address|ip address|ssid|wifi password|default password|user name|pin code|puk|iccid|anatel"
        "|rcm|bis no|imds no|ecode|e mark|type approval|homologation no|nsn|cage|cage code|moq|art code"
        "|article code|artikelcode|item ref|product ref|prod ref|product nr|produkt nr|produktnummer|varenr"
        "|varunr|tuotenro|tuotekoodi|art kod|kod produktu|nr kat|nr katalogowy|obj č|kat č|číslo výrobku|cikkszám"
        "|cod produs|ürün kodu|model kodu|артикул|арт|код товара|модель|код продукта|mã sp|kode barang",
        "nominal capacity|rated capacity|typical capacity|battery capacity|minimum capacity|nominal voltage"
        "|charging voltage|charge voltage|charge limit voltage|limited charge voltage|nominal energy|rated energy"
        "|max charge|max current|max power|max speed|max pressure|rated current|rated input|rated output"
        "|rated load|working pressure|operating voltage|supply voltage|power consumption|power rating"
        "|power source|power supply|cell type|chemistry|ip rating|protection class|degree of protection"
        "|nennspannung|nennleistung|nennstrom|nennkapazität|ladespannung|schutzart|schutzklasse|leistungsaufnahme"
        "|leistung|spannung|tension nominale|capacité nominale|puissance nominale|tension|puissance"
        "|tensión nominal|potencia nominal|capacidad nominal|potencia|tensione nominale|potenza nominale"
        "|capacità nominale|tensione|potenza|spanning|vermogen|额定电压|额定容量|额定功率"
        "|额定电流|标称电压|充电限制电压|容量mah",
        "purity|assay|concentration|density|flash point|boiling point|melting point|molar mass|mol wt"
        "|molecular weight|formula weight|grade|ph value|viscosity|hazard class|packing group|storage class"
        "|lagerklasse|reinheit|dichte|gehalt|flammpunkt|pureté|densité|teneur|pureza|densidad|densidade|purezza"
        "|densità|alc vol|alcohol|abv|alcohol by volume|alkohol|alkoholgehalt|alcool|titre alcoométrique"
        "|alcohol grado|grado alcohólico|gradazione|spf|lsf|ip protezione|纯度|酒精度|密度",
        "rx only|sterile eo|sterile r|sterile|single use|single use only|do not reuse|do not resterilize"
        "|for single use only|prescription only|pom|otc|oral use|for oral use|for topical use|for nasal use"
        "|for injection|for intravenous use|for intramuscular use|for iv use|dosage|posology|directions"
        "|directions for use|how to use|usage|instructions|read the leaflet|read the leaflet before use"
        "|read the package leaflet before use|see leaflet|consult package leaflet|apothekenpflichtig"
        "|verschreibungspflichtig|rezeptpflichtig|nur zur einmaligen verwendung|zur einmaligen verwendung"
        "|nur zum einmalgebrauch|zum einnehmen|zum auftragen auf die haut|packungsbeilage beachten|anwendung"
        "|dosierung|gebrauchsanweisung|gebrauchsanweisung beachten|gebrauchsinformation|nach anbruch"
        "|haltbarkeit nach anbruch|à usage unique|usage unique|voie orale|voie cutanée|mode d'emploi|posologie"
        "|conseils d'utilisation|lire la notice avant utilisation|uniquement sur ordonnance|de un solo uso"
        "|vía oral|uso oral|uso tópico|modo de empleo|modo de uso|posología|venta con receta"
        "|venta bajo receta médica|medicamento sujeto a prescripción médica|monouso|uso orale|uso cutaneo"
        "|modalità d'uso|da vendersi dietro presentazione di ricetta medica|leggere il foglio illustrativo"
        "|medicinale soggetto a prescrizione medica|venda sob prescrição médica|modo de usar"
        "|用法|用量|适应症|批准文号|国药准字"
        "|功能主治|注册证号|备案号|备案编号|执行标准号|卫妆准字|妆字号|保健食品批准文号|性状|禁忌|不良反应|规格性状|使用说明|尺码|适用年龄|适用人群|产品标准代号|生产许可|许可证|合格证|检验员"
        "|检验合格|产地省份",
        "g wt|tare|tara|masa brutto|waga brutto|bruttovikt|bruttogew|gewicht brutto|brüt ağırlık|масса брутто|毛重量"
        "|毛重kg|max gross weight|peso lordo kg|총중량|tare kg|gesamtgewicht|poids total",
        "period after opening|shelf life|use within|use within 12 months of opening|once opened use within"
        "|once opened consume within|after opening use within|after opening consume within|consume within"
        "|best within|keeps for|nach dem öffnen innerhalb|nach öffnen|nach dem öffnen verwendbar|après ouverture"
        "|après ouverture à consommer|à consommer rapidement après ouverture|une vez abierto|una vez abierto"
        "|una vez abierto consumir|dopo l'apertura|dopo apertura|dopo l'apertura consumare entro|na openen"
        "|na opening|depois de aberto|após aberto|após aberto consumir|po otwarciu|po otevření|po otvorení"
        "|felbontás után|după deschidere|açıldıktan sonra|после вскрытия|хранить при|условия хранения"
        "|хранить в сухом|przechowywać w|skladujte|uchovávejte v chladu|tárolás|tárolja|a se păstra"
        "|serin ve kuru yerde|förvaras svalt|opbevares køligt|oppbevares kjølig|säilytys|oprindelse|opprinnelse"
        "|alkuperämaa|kraj pochodzenia|země původu|krajina pôvodu|származási ország|țara de origine"
        "|zemlja porijekla|menşei|страна происхождения|страна изготовитель|сделано в|wyprodukowano w|vyrobeno v"
        "|származás|fabricat în|made in the eu|made in eu|made in china|produced in the eu|hecho en españa"
        "|elaborado en|producto de españa|fabricado na|feito no brasil|produto de|origem|país de origem"
        "|origine ue|provenance|herkunftsland|land van herkomst|herkomst|bewaren|koel bewaren na opening"
        "|gekoeld bewaren|bewaarvoorschrift|bewaaradvies|conservação|conservação e|manter refrigerado"
        "|manter em local seco|conservar refrigerado|mantener refrigerado|mantener en lugar fresco|conservation"
        "|à conserver|à conserver à|à conserver à l'abri|conserver à l'abri de|tenir au sec|conservare"
        "|conservare in frigorifero|conservare al riparo|modalità di conservazione|aufbewahrung|lagerung"
        "|lagern bei|bei raumtemperatur lagern|nicht über 25 c lagern|vor licht schützen|vor sonnenlicht schützen"
        "|vor feuchtigkeit schützen|trocken aufbewahren|kühl aufbewahren|protect from light|protect from moisture"
        "|protect from frost|protect from sunlight|keep in a cool place|keep in a dry place"
        "|keep away from direct sunlight|store away from|store upright|store frozen|store refrigerated"
        "|do not refrigerate|keep cool and dry|washing instructions|machine wash|dry clean only|do not bleach"
        "|tumble dry|hand wash only|iron low|care instructions",
    ),
}

# Everyday words that stand before a number or code without being one of our keys' misreadings: they count as a key
# of `other` only at the start of a line and only with a colon or a number behind them.
WEAK_OTHER = (
    "model|mod|type|typ|tipo|size|größe|taille|talla|colour|color|farbe|couleur|item|art|article|artikel|ref|reference"
    "|référence|part|rev|version|ver|code|no|id|power|voltage|current|input|output|freq|class|grade|series|serving"
    "|energy|temp|storage|step|level|page|date code|unit|style|order|job|line|shift|machine|operator|time|price|total"
    "|sku|standard|norm|position|pos|gate|station|bin|carton|box|pallet|shipment|dest|from|to|width|height|length"
    "|gross|brutto|bruto|tare|tara"
)

# Real words that OCR damage must never turn into a key: `series` is not a misread `serie`, `hot` not `lot`.
NOT_KEYS = (
    "into|site|table|sold|die|label|mode|sole|cent|moss|cart|riot|blend|candle|merge|nail|folds|coil|calf|slid"
    "|series|serve|serves|service|services|date|dates|data|note|notes|parts|party|charger|chargers|charged|change|large"
    "|volt|volts|not|hot|dot|got|pot|cot|low|lol|set|son|sun|sin|sea|see|six|net|new|now|nut|met|bet|let|wet|pet|the"
    "|may|max|min|mix|pro|bar|box|fat|far|car|can|fan|van|pan|tan|man|men|per|pen|ten|ben|her|fer|for|tor|nor|exo|ext"
    "|dim|dot|don|mod|mid|had|bad|dad|pad|mad|prof|food|prop|drop|crop|wood|mood|good|pool|port|part|past|post|host"
    "|cost|lost|most|must|best|test|rest|west|nest|text|next|plus|class|place|plate|late|latte|lotion|later|later"
    "|coffee|toffee|butter|better|matter|latch|match|watch|catch|patch|hatch|bath|beach|bench|reach|each|teach|baker"
    "|barked|packer|packet|packets|pocket|rocket|jacket|exit|expo|export|expert|extra|user|used|uses|sell|seller|fill"
    "|filled|full|fuel|bull|ball|bell|bill|build|guilt|quilt|weights|height|eight|light|right|night|volumes|columns"
    "|column|content|contend|context|constant|contact|contract|contrast|count|court|mount|country|county|amount"
    "|visit|visa|vista|call|cell|calm|mail|male|made|make|maker|mile|mild|wild|tell|tall|fair|fail|tail|sail|jail"
    "|fabric|factory|peso|pesto|presto|preso|nuts|nuss|salz|sals|salsa|serie|sorte|torte|forte|sort|los|las|lis|les"
    "|product|products|product de|produkt|produkte|cereal|cereals|serial|material|bacterial|aerial|rosted|toasted"
)
